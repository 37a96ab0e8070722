"""Troubles of the certificate: found, and gone after the fix was done."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path

from llmd.cli.doctor.certificate import DAY_S, expiry, validity_check
from tests.daemon.cli.doctor.patient import Patient
from tests.serving.certificates.pairs import EXPIRED, FIRST, SECOND, Pair

HTTPS = "[server]\naddr = ['https://127.0.0.1:0']\ntls_cert = '{chain}'\ntls_key = '{key}'\n"


def served(pair: Pair) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.chain, pair.key)
    return context


def test_a_certificate_that_cannot_be_used(patient: Patient, tmp_path: Path) -> None:
    pair = FIRST.copied_to(tmp_path)
    patient = patient.without_address()
    patient.set_up(HTTPS.format(chain=pair.chain, key=pair.key))
    assert patient.examined("certificate")["certificate"]["status"] == "ok"
    shutil.copyfile(SECOND.key, pair.key)
    wrong = patient.examined("certificate")["certificate"]
    assert (wrong["status"], f"{pair.chain} and {pair.key} cannot be used" in wrong["seen"]) == ("fail", True)
    assert "tls_key" in wrong["fix"]
    shutil.copyfile(FIRST.key, pair.key)
    assert patient.examined("certificate")["certificate"]["status"] == "ok"
    Path(pair.chain).unlink()
    assert "No such file" in patient.examined("certificate")["certificate"]["seen"]


def test_without_https_there_is_nothing_to_check(patient: Patient) -> None:
    assert patient.examined("certificate") == {}


def test_a_certificate_that_expires_soon_is_a_warning_with_the_days(tmp_path: Path) -> None:
    ends = expiry(served(FIRST), FIRST.chain)
    assert ends > 4.9e9
    checks = [validity_check(served(FIRST), FIRST.chain, FIRST.key, ends - days * DAY_S) for days in (3, 30)]
    assert [(check.status, check.seen.rpartition(" expires ")[2]) for check in checks] == [
        ("warn", "in 3 days"),
        ("ok", "in 30 days"),
    ]
    assert str(tmp_path) not in checks[0].fix


def test_an_expired_certificate(patient: Patient, tmp_path: Path) -> None:
    pair = EXPIRED.copied_to(tmp_path)
    patient = patient.without_address()
    patient.set_up(HTTPS.format(chain=pair.chain, key=pair.key))
    found = patient.cured("certificate", "certificate")
    assert (found["status"], "expired" in found["seen"]) == ("fail", True)
