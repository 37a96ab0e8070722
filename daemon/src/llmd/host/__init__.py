"""Plugins: found by name, described, probed in a child process, opened; each phase may fail alone.

``plugin_host`` is the way in. Importing the root imports nothing else.
"""
