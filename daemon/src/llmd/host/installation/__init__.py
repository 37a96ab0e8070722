"""Installs and uninstalls plugins in llmd's environment, all or nothing.

pip resolves, builds and unpacks into a folder of its own; the plugin is probed there; only then are its files
moved into the environment, with a journal that undoes an interrupted change. See docs/decisions/0054.
"""
