from __future__ import annotations

from llmd_tui.widgets.plain_text import one_line, printable, to_type


def test_control_characters_never_reach_the_terminal() -> None:
    assert one_line("red \x1b[31mtext\x07\nnext\u202e line ") == "red [31mtext next line"
    assert printable("a\x1b[31mb\r\nc\td") == "a[31mb\nc   d"


def test_the_command_of_a_fix_is_what_is_typed() -> None:
    assert to_type("run `llmd plugins enable x`, then `llmd serve`") == "llmd plugins enable x"
    assert to_type("install driver 550") == "install driver 550"
