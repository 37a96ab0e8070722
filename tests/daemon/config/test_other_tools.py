"""Flags of other tools lead to flags of llmd that exist."""

from __future__ import annotations

import re
from collections import Counter

from llmd.cli.serve import command as serve
from llmd.config.other_tools import OTHER_NAMES, answer_to_flag, answer_to_setting, flags_of


def test_every_name_has_one_meaning() -> None:
    counts = Counter(flag for name in OTHER_NAMES for flag in name.flags)
    assert set(counts.values()) == {1}
    assert all(sum(map(bool, (name.setting, name.argument, name.answer))) == 1 for name in OTHER_NAMES)


def test_serve_takes_every_flag_that_means_a_setting() -> None:
    taken = {flag for parameter in serve.params for flag in parameter.opts}
    for name in OTHER_NAMES:
        if name.setting:
            assert {*name.flags, f"--{name.setting.replace('_', '-')}"} <= taken


def test_flags_of_serve_in_answers_exist() -> None:
    taken = {flag for parameter in serve.params for flag in parameter.opts}
    answers = [name.answer for name in OTHER_NAMES if "of `llmd serve`" in name.answer]
    flags = [flag for answer in answers for flag in re.findall(r"`(--[a-z-]+)", answer)]
    assert set(flags) == {
        "--split",
        "--max-memory",
        "--kv-memory",
        "--kv-dtype",
        "--quant",
        "--prefill-chunk",
        "--threads",
        "--addr",
        "--allow-origin",
        "--keep-alive",
        "--lora",
    }
    assert set(flags) <= taken


def test_a_name_is_answered_as_flag_and_as_setting() -> None:
    assert flags_of("max_ctx") == ("--ctx-size", "--max-model-len")
    assert answer_to_flag("--ctx-size") == "`--max-ctx` of `llmd serve` means the same"
    assert answer_to_setting("CTX_SIZE") == "llmd calls it max_ctx"
    assert answer_to_setting("port") == answer_to_flag("--port")
    assert answer_to_flag("--model") == "it is an argument: llmd COMMAND MODEL"
    assert answer_to_setting("model") == ""
    assert (answer_to_flag("--jsno"), answer_to_setting("slotz")) == ("", "")
