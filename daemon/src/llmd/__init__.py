"""llmd: a plugin-based inference daemon.

Importing the root imports nothing else: every plugin runs it by importing ``llmd.api``.
"""
