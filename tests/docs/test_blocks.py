"""Blocks of code are found as a reader sees them, and output is compared as a page shows it."""

from __future__ import annotations

import pytest

from tests.docs.blocks import Command, blocks, commands, difference, is_complete

PAGE = """# Title

Run it:

```console
$ one --flag  # why
output
$ two \\
    'a
b'
> typed
>
answer
```

Save this as `folder/name.toml`:

```toml
a = 1
```
"""


def test_blocks_have_language_place_and_file() -> None:
    console, toml = blocks(PAGE)
    assert (console.language, console.line, console.file) == ("console", 6, "")
    assert (toml.language, toml.text, toml.file) == ("toml", "a = 1\n", "folder/name.toml")


def test_commands_have_input_and_output() -> None:
    assert commands(blocks(PAGE)[0]) == [
        Command("one --flag  # why", 6, (), ("output",)),
        Command("two \\\n    'a\nb'", 8, ("typed", ""), ("answer",)),
    ]


@pytest.mark.parametrize("body", ["output first\n$ one\n", "$ one 'open\n$ two\n"])
def test_broken_blocks_are_refused(body: str) -> None:
    (block,) = blocks(f"```console\n{body}```\n")
    with pytest.raises(AssertionError):
        commands(block)


@pytest.mark.parametrize("page", ["- item\n  ```sh\n  ls\n  ```\n", "```sh\nls\n", "~~~sh\nls\n~~~\n"])
def test_fences_that_would_be_overlooked_are_refused(page: str) -> None:
    with pytest.raises(AssertionError):
        blocks(page)


def test_here_documents_are_complete_with_their_last_word() -> None:
    assert not is_complete("cat > a <<'END'\ntext")
    assert is_complete("cat > a <<'END'\ntext's\nEND")


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        (["a  b"], "a b\n"),
        (["at …:80"], "at 127.0.0.1:80"),
        (["first", "…", "last"], "first\nsecond\nthird\nlast\n"),
        (["first", "…"], "first\n"),
        (["…", "last"], "last\n"),
    ],
)
def test_same_output_has_no_difference(shown: list[str], output: str) -> None:
    assert difference(shown, output) == ""


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        (["a"], "b"),
        (["a…c"], "a\nc"),
        (["a"], "a\nb"),
        (["a", "b"], "a"),
        (["…", "last"], "first\nlast\nmore"),
    ],
)
def test_other_output_is_shown(shown: list[str], output: str) -> None:
    assert output in difference(shown, output)
