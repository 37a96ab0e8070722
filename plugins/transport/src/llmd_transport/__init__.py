"""Transports for llmd, one per module. Importing this package imports nothing else."""
