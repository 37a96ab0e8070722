"""Encrypted connections that fail say what is wrong, and which setting or address fixes it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llmd.api.errors import ConfigError, DaemonUnreachableError
from llmd.client import Client
from llmd.client_tls import expects_tls, tls_failure, trusting
from llmd.config import TcpAddress, load_settings
from tests.serving.certificates.pairs import FIRST, SECOND
from tests.serving.running import directories_below, running_daemon

PLACE = TcpAddress("127.0.0.1", 9, tls=True)


def test_each_side_learns_that_the_other_encrypts_or_does_not(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, probes)
    addr = ["https://127.0.0.1:0", "127.0.0.1:0"]
    with running_daemon(directories, models=(), addr=addr, tls_cert=FIRST.chain, tls_key=FIRST.key) as daemon:
        encrypted, plain = [one for one in daemon.serving.addresses if isinstance(one, TcpAddress)]
        settings = load_settings({"ca_file": SECOND.chain}, environ={}, directories=directories)

        def refusal(host: str) -> DaemonUnreachableError:
            with pytest.raises(DaemonUnreachableError) as caught:
                Client(host, settings=settings).version()
            return caught.value

        untrusted = refusal(encrypted.url)
        assert "is not trusted: self-signed certificate" in untrusted.message
        assert "LLMD_CA_FILE" in untrusted.hint
        missed = refusal(f"http://127.0.0.1:{encrypted.port}")
        assert "expects encrypted connections" in missed.message
        assert missed.hint == f"name it https://127.0.0.1:{encrypted.port}"
        assert refusal(f"https://{plain}").hint == f"if the server does not encrypt, name it http://{plain}"
        assert expects_tls(encrypted)
        assert not expects_tls(plain)


def test_a_certificate_of_another_name_is_told_apart() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = 62, "Hostname mismatch"
    assert tls_failure(PLACE, error).hint == "name the server as its certificate does"


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda _path: None, "No such file"),
        (lambda path: path.write_text("hello"), "no certificate in PEM"),
        (lambda path: path.mkdir(), "directory"),
    ],
)
def test_a_file_of_certificates_that_cannot_be_used_is_named(
    tmp_path: Path, write: Callable[[Path], Any], reason: str
) -> None:
    write(tmp_path / "ca.pem")
    with pytest.raises(ConfigError, match=rf"ca\.pem cannot be used: .*{reason}") as caught:
        trusting(str(tmp_path / "ca.pem"))
    assert "LLMD_CA_FILE" in caught.value.hint
