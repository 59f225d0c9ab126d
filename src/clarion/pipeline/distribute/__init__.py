"""Distribute: claims due messages, calls their providers and records what came back. `pump` is the stage."""
