"""Vaults, which keep the master key: one module for each product that can."""
