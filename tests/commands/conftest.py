"""Runs commands in this process."""

from tests.daemon.cli.conftest import llmd

__all__ = ["llmd"]
