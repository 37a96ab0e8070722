"""Values have units, and unset values say what applies instead."""

from __future__ import annotations

from typing import Any

import pytest

from llmd.config.addresses import DEFAULT_TCP
from llmd.config.setting_text import UNSET, default_text, setting_text
from llmd.config.setting_values import setting_fields


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("max_body", 64 << 20, "64.0 MiB"),
        ("max_memory", 24 << 30, "24.0 GiB"),
        ("keep_alive", 300.0, "5m"),
        ("keep_alive", -1.0, "-1"),
        ("drain_s", 2.5, "2.5 s"),
        ("slots", 8, "8"),
        ("no_auth", True, "true"),
        ("addr", ["127.0.0.1:1", "unix:/x"], "127.0.0.1:1, unix:/x"),
        ("device", "cpu", "cpu"),
        ("threads", None, "the fastest number"),
        ("allow_host", (), ""),
        ("tls_cert", None, ""),
        ('models."org/a.b".kv_spool', 1 << 30, "1.0 GiB"),
        ("server.max_queue_tokens", None, "no limit"),
    ],
)
def test_a_value_is_shown_with_its_unit(name: str, value: Any, text: str) -> None:
    assert setting_text(name, value) == text


def test_defaults_are_those_of_the_schema() -> None:
    assert (default_text("slots"), default_text("kv_spool")) == ("8", "1.0 GiB")
    assert (default_text("no_auth"), default_text("split"), default_text("alias")) == ("", "", "")


def test_only_settings_without_a_value_are_described() -> None:
    defaults = {key.partition(".")[2]: field.default for key, field in setting_fields().items()}
    assert [name for name in UNSET if defaults[name] not in (None, ())] == []
    assert str(DEFAULT_TCP) in UNSET["addr"]
    assert str(DEFAULT_TCP) in UNSET["host"]
