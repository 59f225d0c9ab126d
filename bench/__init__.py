"""The benchmark: what Clarion reaches beside the raw limit of the same machine, measured in the same run.

Machines differ and are shared, so the figures that matter are ratios. `python -m bench` prints a table and writes
`results/latest.json`; nothing here is a test.
"""
