from __future__ import annotations

from llmd_tui.screens.chat.code_blocks import code_blocks


def test_all_kinds_of_code_blocks_are_found() -> None:
    text = "Try\n\n```python\nprint(1)\n```\n\n- in a list:\n\n  ~~~\n  ls\n  ~~~\n\nor\n\n    indented\n"
    assert code_blocks(text) == ["print(1)\n", "ls\n", "indented\n"]


def test_text_and_inline_code_are_none() -> None:
    assert code_blocks("use `ls` here") == []


def test_a_block_that_is_cut_off_is_one() -> None:
    assert code_blocks("```\nhalf") == ["half"]
