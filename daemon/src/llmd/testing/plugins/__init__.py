"""Checks of plugins that have no device: each kind against its part of the contract, for ``llmd check``."""
