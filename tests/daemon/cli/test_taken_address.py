"""An address that a daemon is about to leave is told apart from one that is in use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError
from llmd.cli.taken_address import draining_daemon, explained_conflicts
from llmd.config import Settings, load_settings
from llmd.config.listening import listening_addresses
from llmd.server.http.listeners import EXIT_CONFLICT, listen
from tests.serving.http import open_stream
from tests.serving.model import write_model
from tests.serving.running import MODEL, directories_below, running_daemon


def settings_for(folder: Path, *addr: str) -> Settings:
    flags: dict[str, Any] = {"addr": addr, "user_socket": False}
    return load_settings(flags, environ={}, directories=directories_below(folder))


def test_a_daemon_that_drains_is_named(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    write_model(directories.models / MODEL, context_len=1 << 15)
    long = {"max_tokens": 1 << 14, "ignore_eos": True}
    with running_daemon(directories, drain_s=60.0) as daemon, open_stream(daemon, long) as stream:
        stream.readline()
        settings = settings_for(tmp_path, str(daemon.tcp))
        assert draining_daemon(settings) is None
        daemon.shut_down()
        while draining_daemon(settings) is None:
            pass
        with (
            pytest.raises(
                ConfigError, match=r"in use: an llmd daemon at .* answers its last requests"
            ) as caught,
            explained_conflicts(settings),
            listen(listening_addresses(settings)),
        ):
            pass
    assert (caught.value.exit_code, "llmd stop --daemon" in caught.value.hint) == (EXIT_CONFLICT, True)


def test_another_conflict_is_told_as_ever(tmp_path: Path) -> None:
    error = ConfigError("it is in use")
    error.exit_code = EXIT_CONFLICT
    settings = settings_for(tmp_path, f"unix:{tmp_path}/nobody.sock")
    with pytest.raises(ConfigError, match=r"it is in use$"), explained_conflicts(settings):
        raise error
