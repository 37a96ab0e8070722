from __future__ import annotations

import os
import socket
from pathlib import Path

from llmd.cli.doctor.listening_process import Listening, on_port, on_socket


def test_this_process_is_found_where_it_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))
        local.listen()
        mine = Listening(os.getpid(), os.getuid())
        assert on_port(server.getsockname()[1]) == mine
        assert on_socket(tmp_path / "s") == mine
        assert str(mine).endswith(f", process {os.getpid()}")


def test_nobody_is_found_where_nobody_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert on_port(port) is None
    assert on_socket(tmp_path / "none") is None
    assert str(Listening(None, 5)) == "a process of user 5"
