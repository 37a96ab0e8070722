from __future__ import annotations

from llmd.config.setting_docs import setting_docs
from llmd.config.setting_values import keys_by_name


def test_every_setting_says_what_it_means() -> None:
    assert keys_by_name().keys() <= setting_docs().keys()
    assert setting_docs()["addr"] == "Addresses to listen on; empty: the user's socket and 127.0.0.1:8642."
    assert all(text.endswith(".") for text in setting_docs().values())
