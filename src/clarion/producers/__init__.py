"""Producers: the reasons to send. They use dispatch; they cannot see the pipeline or a provider."""
