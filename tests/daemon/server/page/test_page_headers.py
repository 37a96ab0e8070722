from __future__ import annotations

import pytest

from llmd.server.page.page_headers import HEADERS, is_unchanged, prefers_html

CHROMIUM = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (CHROMIUM, True),
        ("text/html", True),
        ("TEXT/HTML; q=0.5", True),
        ("application/xhtml+xml", True),
        ("", False),
        ("*/*", False),
        ("text/*", False),
        ("application/json, text/plain, */*", False),
        ("text/html;q=0", False),
        ("text/html; q=0.0, */*", False),
        ("text/htmlx", False),
    ],
)
def test_only_clients_that_name_html_get_it(accept: str, *, expected: bool) -> None:
    assert prefers_html(accept) is expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('"a"', True),
        ('W/"a"', True),
        ('"b", "a"', True),
        ("*", True),
        ("", False),
        ('"b"', False),
        ("a", False),
    ],
)
def test_a_known_tag_is_unchanged(header: str, *, expected: bool) -> None:
    assert is_unchanged(header, '"a"') is expected


def test_the_policy_allows_only_what_the_daemon_serves() -> None:
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "form-action": "'none'",
    }
