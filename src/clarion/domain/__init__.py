"""The domain: pure nouns. Keys, hashes, identities, state tables and the records built from them.

Everything here is a function of its arguments: no I/O, no clock, no chance. What the core asks of the world stands in
`ports`; how a record comes to exist stands in `dispatch`.
"""
