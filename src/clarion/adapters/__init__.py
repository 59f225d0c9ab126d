"""The brands behind the ports: stores, blobs, vaults and the host's clock.

An adapter imports ports, domain and errors only, and is loaded by name through an entry point, ours exactly as a
stranger's. Vendor exceptions end here: what leaves an adapter is a value of its port or an error of `clarion.errors`.
"""
