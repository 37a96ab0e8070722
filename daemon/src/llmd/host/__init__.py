"""Plugins: discovered by name, described, probed in a child process, opened. Each phase may fail on its own.

``plugin_host`` is the entry point. Importing this package imports none of its modules.
"""
