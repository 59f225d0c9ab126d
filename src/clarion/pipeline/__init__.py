"""The pipeline: schedule → generate → distribute → track, and settle for what is uncertain.

Each stage is a step that claims a bounded batch, does it, records it and says how much was done. Stages meet in the
store and never import each other; what runs them is in `workers`.
"""
