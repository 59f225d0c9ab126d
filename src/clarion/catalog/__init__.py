"""The control plane: verbs that change definitions, people, settings and keys, and the library that reads templates."""
