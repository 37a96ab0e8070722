"""Headers of the page's files: what the page may load, and which pages may load it."""

from __future__ import annotations

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "form-action": "'none'",
}
"""Nothing from elsewhere, and no script or style within a document: text of a model cannot become code."""

HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {allowed}" for name, allowed in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # Browsers ask each time, and get 304 until llmd is updated.
    "Cache-Control": "no-cache",
}


def prefers_html(accept: str) -> bool:
    """Whether a client asks for HTML by name, as browsers do; ``*/*`` of curl and of SDKs does not count."""
    for part in accept.split(","):
        kind, *parameters = (one.strip() for one in part.split(";"))
        if kind.lower() in {"text/html", "application/xhtml+xml"}:
            return not any(_is_zero(one) for one in parameters)
    return False


def is_unchanged(if_none_match: str, etag: str) -> bool:
    """Whether the client has the file already. A proxy that compresses makes the tag weak (``W/``)."""
    known = {one.strip().removeprefix("W/") for one in if_none_match.split(",")}
    return etag in known or "*" in known


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip().lower() == "q" and value.strip() in {"0", "0.0", "0.00", "0.000"}
