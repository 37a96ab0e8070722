"""The certificate of a daemon that serves https."""

from __future__ import annotations

import shlex
import ssl
from collections.abc import Iterator

from llmd.api.errors import ConfigError
from llmd.cli.doctor.check import Check, Surroundings

SOON_S = 14 * 24 * 3600.0
DAY_S = 24 * 3600.0
HANDSHAKE_STEPS = 10


def checks(around: Surroundings) -> Iterator[Check]:
    from llmd.config.listening import listening_addresses
    from llmd.server.http.certificate import certificate_for

    listening = around.settings.config.server.listen
    try:
        certificate = certificate_for(
            listening_addresses(around.settings), listening.tls_cert, listening.tls_key
        )
    except ConfigError as error:
        yield Check("certificate", "fail", error.message, error.hint)
        return
    if certificate is not None:
        assert listening.tls_cert is not None
        yield validity_check(
            certificate.context, listening.tls_cert, listening.tls_key or listening.tls_cert, around.now
        )


def validity_check(server: ssl.SSLContext, chain: str, key: str, now: float) -> Check:
    """Check that a client that trusts exactly this certificate accepts it now, and will for two weeks."""
    fix = (
        f"renew it with whoever issued it, or sign a new one yourself: `openssl req -x509 -nodes -newkey rsa:2048 "
        f"-days 365 -subj /CN=localhost -keyout {shlex.quote(key)} -out {shlex.quote(chain)}`"
    )
    try:
        left_s = expiry(server, chain) - now
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        return Check("certificate", "fail", f"clients refuse {chain}: {reason}", fix)
    seen = f"{chain} expires in {left_s / DAY_S:.0f} days"
    return Check("certificate", "warn", seen, fix) if left_s < SOON_S else Check("certificate", "ok", seen)


def expiry(server: ssl.SSLContext, chain: str) -> float:
    """Return when the server's certificate expires, in seconds since 1970.

    Raises:
        ssl.SSLError: it is not valid now.
    """
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.load_verify_locations(chain)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # trust it though its issuer may be missing
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(HANDSHAKE_STEPS):
        done = [_advanced(side) for side in sides]
        if all(done):
            break
    found = sides[0].getpeercert() or {}
    return ssl.cert_time_to_seconds(str(found["notAfter"]))


def _advanced(side: ssl.SSLObject) -> bool:
    """Go on with a handshake; return whether it is done."""
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
