"""What the core asks of the world, as protocols: adapters implement them, bootstrap chooses which.

A port names an intention and says what an implementation promises; it holds no code that touches the world. A protocol
is matched by its shape, so an adapter imports a port only for its types and limits.
"""
