"""The list of known plugins is read from llmd, a file or a URL, and searched by words."""

from __future__ import annotations

import datetime as dt
import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from llmd.api.errors import ConfigError, NotFoundError
from llmd.host.kinds import KINDS
from llmd.host.plugin_index import read_index, search

LIST = """
[[plugins]]
name = "made-gpu"
summary = "Kernels for a card"
provides = ["backend"]
install = "made-gpu"
added = 2026-01-02

[[plugins]]
name = "made-api"
summary = "An HTTP API"
provides = ["dialect", "command"]
install = "https://example.org/made-api.whl"
added = 2026-01-03
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    (tmp_path / "list.toml").write_text(LIST)
    return tmp_path / "list.toml"


@pytest.fixture
def url(listed: Path) -> Iterator[str]:
    """The address of the list on a server of its folder."""
    handler = functools.partial(_Quiet, directory=str(listed.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/list.toml"
        server.shutdown()
        thread.join()


def test_the_list_of_llmd_names_real_kinds_and_days() -> None:
    entries = read_index().plugins
    assert {"llmd-backend-cpu", "llmd-backend-cuda", "llmd-backend-vulkan", "llmd-transport"} <= {
        entry.name for entry in entries
    }
    for entry in entries:
        assert set(entry.provides) <= {kind.name for kind in KINDS}
        assert entry.provides
        assert entry.install
        assert dt.date(2026, 1, 1) < entry.added


def test_all_words_must_be_in_an_entry(listed: Path) -> None:
    index = read_index(str(listed))
    assert [entry.name for entry in search(index, [])] == ["made-api", "made-gpu"]
    assert [entry.name for entry in search(index, ["CARD"])] == ["made-gpu"]
    assert [entry.name for entry in search(index, ["made", "dialect"])] == ["made-api"]
    assert search(index, ["card", "dialect"]) == []


def test_a_list_may_be_at_a_url(url: str, listed: Path) -> None:
    assert read_index(url) == read_index(str(listed))


def test_a_list_that_is_not_there_is_not_found(url: str, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"none\.toml cannot be read: No such file"):
        read_index(str(tmp_path / "none.toml"))
    with pytest.raises(NotFoundError, match=r"cannot be fetched: .*(404|not found)"):
        read_index(url.replace("list", "none"))


def test_a_wrong_field_is_named(listed: Path) -> None:
    listed.write_text(LIST.replace("summary", "sumary"))
    with pytest.raises(ConfigError, match="sumary"):
        read_index(str(listed))
    listed.write_text("not toml")
    with pytest.raises(ConfigError, match="is not a list of plugins"):
        read_index(str(listed))
