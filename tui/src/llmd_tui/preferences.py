"""What a person chose in the interface, kept from one use to the next."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from llmd.api.decoding import prepared
from llmd_tui.widgets.table_rows import Sorting

NAME = "tui.json"


class Preferences(msgspec.Struct, frozen=True):
    """Choices of a person."""

    screen: str = ""
    """The screen that was shown last."""
    theme: str = "textual-dark"
    ascii: bool = False
    """Whether graphs and bars are drawn with ASCII characters, for fonts without blocks."""
    model: str = ""
    """The model of the last chat."""
    sorting: Mapping[str, Sorting] = {}
    """How tables are sorted, by the name of their screen."""

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Return the kept choices; the defaults if there are none or they cannot be read."""
        try:
            return msgspec.json.decode((folder / NAME).read_bytes(), type=prepared(cls))
        except (OSError, msgspec.DecodeError):
            return cls()

    def write(self, folder: Path) -> None:
        """Keep the choices. They are lost without a word if that fails: nothing depends on them."""
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / NAME).write_bytes(msgspec.json.encode(self))
