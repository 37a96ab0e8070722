from __future__ import annotations

import pytest

from llmd.api.errors import ConfigError
from llmd.server.http.origins import AllowedOrigins, allowed_origins

DEFAULT = AllowedOrigins()
INTERNET = ("https://evil.example", "http://93.184.216.34", "null")


def allowed(*patterns: str) -> AllowedOrigins:
    return allowed_origins(patterns, "config.toml")


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost",
        "http://localhost:3000",
        "http://localhost.:3000",
        "https://127.0.0.1",
        "http://127.8.8.8:1",
        "http://[::1]:1",
        "http://tauri.localhost",
        "http://0.0.0.0:5173",
        "http://[::]:5173",
    ],
)
def test_pages_of_this_machine_are_allowed_on_any_port(origin: str) -> None:
    assert origin in DEFAULT


@pytest.mark.parametrize(
    "origin",
    [
        "app://obsidian.md",
        "app://-",
        "file://",
        "tauri://localhost",
        "vscode-webview://1k2j3h4g5f",
        "vscode-file://vscode-app",
    ],
)
def test_desktop_apps_are_allowed(origin: str) -> None:
    assert origin in DEFAULT


@pytest.mark.parametrize(
    "origin",
    [
        *INTERNET,
        "http://localhost.evil.example",
        "http://notlocalhost",
        "http://localhost..",
        "https://app.example",
        "http://192.168.1.5:3000",
        "http://evil.example@localhost",
        "http://localhost/evil.example",
        "http://localhost#evil.example",
        "http://[",
        "http://",
        "http://localhost:*",
        "https://*",
        "*",
        "localhost",
        "",
    ],
)
def test_pages_of_the_internet_and_what_is_no_origin_are_refused(origin: str) -> None:
    assert origin not in DEFAULT


@pytest.mark.parametrize("scheme", ["ftp", "ws", "chrome-extension", "moz-extension", "data", "apps", "xapp"])
def test_local_name_does_not_make_up_for_a_foreign_scheme(scheme: str) -> None:
    assert f"{scheme}://localhost" not in DEFAULT
    assert f"{scheme}://127.0.0.1" not in DEFAULT


def test_named_origin_is_allowed_with_its_scheme_and_port_alone() -> None:
    origins = allowed("https://app.example", "http://192.168.1.5:3000")
    assert "https://app.example" in origins
    assert "http://192.168.1.5:3000" in origins
    for other in (
        "http://app.example",
        "https://app.example:8443",
        "https://sub.app.example",
        "https://app.example.evil.example",
        "http://192.168.1.5",
        *INTERNET,
    ):
        assert other not in origins


def test_named_origins_add_to_those_of_this_machine() -> None:
    assert "http://localhost:3000" in allowed("https://app.example")
    assert "app://obsidian.md" in allowed("https://app.example")


@pytest.mark.parametrize(
    "pattern", ["https://app.example/", "https://APP.example", "https://app.example:443"]
)
def test_slash_capitals_and_the_port_of_the_scheme_change_nothing(pattern: str) -> None:
    origins = allowed(pattern)
    assert "https://app.example" in origins
    assert "https://app.example:444" not in origins


def test_star_and_dot_cover_the_names_below_a_domain() -> None:
    origins = allowed("https://*.example.com")
    assert "https://a.example.com" in origins
    assert "https://a.b.example.com" in origins
    for other in (
        "https://example.com",
        "https://.example.com",
        "https://evilexample.com",
        "https://a.example.com.evil.example",
        "https://a.example.com:8443",
        "http://a.example.com",
    ):
        assert other not in origins


def test_star_as_the_port_covers_every_port() -> None:
    origins = allowed("http://192.168.1.5:*", "https://*.example.com:*")
    for origin in ("http://192.168.1.5", "http://192.168.1.5:3000", "https://a.example.com:8443"):
        assert origin in origins
    assert "http://192.168.1.50:3000" not in origins


def test_star_as_the_host_covers_a_scheme() -> None:
    origins = allowed("chrome-extension://*", "https://*")
    for origin in ("chrome-extension://abc", "https://evil.example", "https://evil.example:8443"):
        assert origin in origins
    assert "moz-extension://abc" not in origins
    assert "http://evil.example" not in origins
    assert "https://evil.example:1" not in allowed("https://*:8443")


def test_star_alone_covers_every_origin() -> None:
    origins = allowed("https://app.example", "*")
    for origin in (*INTERNET, "moz-extension://abc", "https://app.example"):
        assert origin in origins


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("null", "any page can have the origin null"),
        ("app.example", "the scheme is missing"),
        ("*.example.com", "the scheme is missing"),
        ("localhost:3000", "the scheme is missing"),
        ("", "the scheme is missing"),
        ("https://app.example/chat", "not SCHEME://HOST"),
        ("https://user@app.example", "not SCHEME://HOST"),
        ("https://app.example:port", "not SCHEME://HOST"),
        ("*://app.example", "not SCHEME://HOST"),
        ("https://", "not SCHEME://HOST"),
        ("https://:80", "neither a name nor a pattern"),
        ("https://app.*", "neither a name nor a pattern"),
        ("https://*app.example", "neither a name nor a pattern"),
        ("https://a.*.example", "neither a name nor a pattern"),
        ("https://*.*", "neither a name nor a pattern"),
    ],
)
def test_bad_patterns_are_refused_with_their_source(pattern: str, problem: str) -> None:
    with pytest.raises(ConfigError, match="allow_origin from LLMD_ALLOW_ORIGIN") as caught:
        allowed_origins([pattern], "LLMD_ALLOW_ORIGIN")
    assert problem in str(caught.value)
    assert repr(pattern) in str(caught.value)
    assert caught.value.hint
