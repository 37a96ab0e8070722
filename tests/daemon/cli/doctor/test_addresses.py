"""Addresses that are taken, and sockets that are stale or open: found, and gone after the fix was typed."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llmd.cli.doctor.addresses import bindable_check, free_address, socket_check
from llmd.config import TcpAddress
from tests.daemon.cli.doctor.patient import Patient
from tests.serving.certificates.pairs import EXPIRED
from tests.serving.home import make_home

OTHER_PROGRAM = "import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), h.BaseHTTPRequestHandler); print(s.server_port, flush=True); s.serve_forever()"


@contextmanager
def another_program() -> Iterator[int]:
    """A web server that is no llmd, in a process of its own; its port."""
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def listening(patient: Patient, port: int) -> Patient:
    """Return a user whose file has the own socket and a port."""
    user = patient.without_address()
    user.set_up(f"[server]\naddr = ['unix:{user.home.socket}', '127.0.0.1:{port}']\n")
    return user


def test_a_port_that_another_program_has(patient: Patient) -> None:
    with another_program() as port:
        user = listening(patient, port)
        name = f"address:127.0.0.1:{port}"
        found = user.cured("addresses", name)
        assert (found["status"], "another program uses it (python" in found["seen"]) == ("fail", True)
        free = [check for check in user.examined("addresses").values() if check["id"].startswith("address:")]
        assert [check["status"] for check in free] == ["ok"]
        assert f"unix:{user.home.socket}" in user.config.read_text()


def test_a_port_that_another_daemon_has(patient: Patient, tmp_path: Path, probes: Path) -> None:
    other = make_home(tmp_path / "other", probes)
    with other.serve("--addr", "127.0.0.1:0") as served:
        port = int(served.url.rpartition(":")[2])
        user = listening(patient, port)
        found = user.examined("addresses")[f"address:127.0.0.1:{port}"]
        assert (found["status"], "another llmd daemon uses it" in found["seen"]) == ("fail", True)
        stopping = f"llmd stop --daemon --host 127.0.0.1:{port}"
        assert f"`{stopping}`" in found["fix"]
        assert user.shell(stopping).returncode == 0
        assert served.process.wait() == 0
    assert user.examined("addresses")[f"address:127.0.0.1:{port}"]["seen"] == "free"


def test_an_encrypted_port_answers_whatever_its_certificate_is_for(patient: Patient) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    user = patient.without_address()
    user.set_up(
        f"[server]\naddr = ['https://0.0.0.0:{port}']\nno_auth = true\n"
        f"tls_cert = '{EXPIRED.chain}'\ntls_key = '{EXPIRED.key}'\n"
    )
    flags = ("--no-auth", "--tls-cert", EXPIRED.chain, "--tls-key", EXPIRED.key)
    with user.home.serve("--addr", f"https://0.0.0.0:{port}", *flags) as served:
        assert served.line
        found = user.examined("addresses")
        assert (found[f"address:https://0.0.0.0:{port}"]["status"]) == "ok"
        assert found[f"address:https://0.0.0.0:{port}"]["seen"].startswith("llmd ")


def test_the_users_own_daemon_is_no_trouble(patient: Patient) -> None:
    with patient.home.serve() as served:
        assert served.line
        found = patient.examined("addresses")[f"socket:{patient.home.socket}"]
        assert (found["status"], f"process {served.process.pid}" in found["seen"]) == ("ok", True)
        patient.home.socket.chmod(0o666)
        assert "0666" in patient.cured("addresses", f"socket:{patient.home.socket}")["seen"]


def left_behind(path: Path) -> None:
    """Make a socket on which nobody listens any more."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        made.bind(str(path))


def test_a_stale_socket(patient: Patient) -> None:
    left_behind(patient.home.socket)
    patient.home.socket.parent.chmod(0o700)
    found = patient.cured("addresses", f"socket:{patient.home.socket}")
    assert "no daemon listens on it" in found["seen"]
    assert not patient.home.socket.exists()


def test_a_file_in_place_of_the_socket(patient: Patient) -> None:
    patient.home.socket.parent.mkdir()
    patient.home.socket.write_text("")
    assert patient.cured("addresses", f"socket:{patient.home.socket}")["seen"] == "it is a file, not a socket"


def test_a_folder_in_which_others_may_replace_the_socket(patient: Patient) -> None:
    patient.home.socket.parent.mkdir()
    patient.home.socket.parent.chmod(0o777)
    found = patient.cured("addresses", f"socket-folder:{patient.home.socket.parent}")
    assert "mode 0777" in found["seen"]


def test_a_socket_of_another_user(tmp_path: Path) -> None:
    assert socket_check(tmp_path / "none").status == "ok"
    assert socket_check(tmp_path / ("x" * 300)).status == "fail"


def test_an_address_that_this_machine_does_not_have() -> None:
    check = bindable_check("address:x", TcpAddress("192.0.2.1", 1), "listen elsewhere")
    assert (check.status, check.fix) == ("fail", "listen elsewhere")
    assert bindable_check("address:x", TcpAddress("127.0.0.1", 0), "").status == "ok"


def test_a_free_address_is_one_where_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = free_address(TcpAddress("127.0.0.1", port - 1))
    assert found.port != port
    assert found.host == "127.0.0.1"


def test_a_port_that_is_the_end_of_a_connection_is_not_free() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.create_connection(server.getsockname()) as connection:
        port = connection.getsockname()[1]
        found = free_address(TcpAddress("127.0.0.1", port - 1))
        assert port < found.port < port + 20
