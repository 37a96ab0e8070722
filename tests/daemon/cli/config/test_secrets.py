from __future__ import annotations

from llmd.cli.config.secrets import HIDDEN, shown_value


def test_only_secrets_that_are_set_are_hidden() -> None:
    assert shown_value("client.api_key", "k") == HIDDEN
    assert shown_value("client.api_key", None) is None
    assert shown_value("client.host", "h") == "h"
