"""The model and the daemon of the server's tests."""

from tests.daemon.server.conftest import daemon, model_directory, probes, text

__all__ = ["daemon", "model_directory", "probes", "text"]
