from __future__ import annotations

import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError, DaemonUnreachableError
from llmd.client import Client
from llmd.config import TcpAddress, UnixAddress, load_settings
from llmd.server.http.certificate import Certificate, certificate_for
from tests.serving.certificates.pairs import FIRST, SECOND, Pair
from tests.serving.running import RunningDaemon, directories_below, running_daemon

HTTPS = TcpAddress("127.0.0.1", 0, tls=True)


def shown_at(daemon: RunningDaemon) -> str:
    """Return the certificate that the daemon shows to new connections."""
    return ssl.get_server_certificate((daemon.tcp.host, daemon.tcp.port))


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A certificate and key that a test may replace."""
    return FIRST.copied_to(tmp_path)


def test_addresses_and_certificate_belong_together(tmp_path: Path) -> None:
    plain = (TcpAddress("127.0.0.1"), UnixAddress(tmp_path / "s"))
    assert certificate_for(plain, None, None) is None
    assert certificate_for((*plain, HTTPS), FIRST.chain, FIRST.key) is not None
    with pytest.raises(ConfigError, match="needs a certificate"):
        certificate_for((*plain, HTTPS), None, None)
    with pytest.raises(ConfigError, match="no address uses it"):
        certificate_for(plain, FIRST.chain, FIRST.key)


def test_files_that_cannot_be_used_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "broken.pem").write_text("-----BEGIN")
    for chain, key in (
        (FIRST.chain, SECOND.key),
        (FIRST.chain, None),
        (str(tmp_path / "broken.pem"), FIRST.key),
        (str(tmp_path / "nowhere.pem"), FIRST.key),
    ):
        with pytest.raises(ConfigError, match=rf"{Path(chain).name}.* cannot be used"):
            Certificate(chain, key)


def test_key_may_stand_in_the_file_of_the_chain(tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_text(Path(FIRST.chain).read_text() + Path(FIRST.key).read_text())
    Certificate(str(both), None)


def test_key_with_a_password_is_refused_and_nobody_is_asked(tmp_path: Path) -> None:
    locked = tmp_path / "locked.key"
    command = ["openssl", "ec", "-aes256", "-passout", "pass:x", "-in", FIRST.key, "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.raises(ConfigError, match="has a password"):
        Certificate(FIRST.chain, str(locked))


def test_clients_that_know_the_certificate_are_served_and_others_refuse(
    tmp_path: Path, probes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = directories_below(tmp_path, probes)
    addr = ["https://127.0.0.1:0"]
    with running_daemon(directories, models=(), addr=addr, tls_cert=FIRST.chain, tls_key=FIRST.key) as daemon:
        assert daemon.serving.addresses == (UnixAddress(daemon.socket), daemon.tcp)
        assert f" and https://127.0.0.1:{daemon.tcp.port}" in str(daemon.serving)
        settings = load_settings({"ca_file": FIRST.chain}, environ={}, directories=directories)
        assert Client(daemon.tcp.url, settings=settings).version() == daemon.serving.version
        for wrong in (
            load_settings(environ={}, directories=directories),
            load_settings({"ca_file": SECOND.chain}, environ={}, directories=directories),
        ):
            with pytest.raises(DaemonUnreachableError, match="is not trusted"):
                Client(daemon.tcp.url, settings=wrong).version()


def test_certificate_is_read_anew_and_a_faulty_one_is_refused(
    tmp_path: Path, probes: Path, pair: Pair
) -> None:
    directories = directories_below(tmp_path, probes)
    options: dict[str, Any] = {"addr": ["https://127.0.0.1:0"], "tls_cert": pair.chain, "tls_key": pair.key}
    with running_daemon(directories, models=(), **options) as daemon:
        assert shown_at(daemon) == Path(FIRST.chain).read_text()
        SECOND.copied_to(tmp_path)
        daemon.reload()
        assert shown_at(daemon) == Path(SECOND.chain).read_text()
        Path(pair.chain).write_text("")
        with pytest.raises(ConfigError, match="cannot be used"):
            daemon.reload()
        assert shown_at(daemon) == Path(SECOND.chain).read_text()
