"""``modules.json``: the modules that sentence-transformers applies one after another."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import CheckpointError
from llmd.models.files import is_named, read_bytes
from llmd.models.json_file import DAMAGED

MODULES_FILE = "modules.json"
MAX_BYTES = 1_000_000
SCORE = "LogitScore"
"""The kind that turns two logits of a generating model into a score; such a model does not embed."""


class Module(msgspec.Struct, frozen=True):
    """An entry of ``modules.json``."""

    type: str
    """Class name."""
    path: str = ""
    """Folder of its files; empty: the model directory itself."""

    @property
    def is_root(self) -> bool:
        """Whether its files are in the model directory itself."""
        return self.path in ("", ".")

    @property
    def kind(self) -> str:
        """The last part of the class name; the rest differs between versions."""
        return self.type.rpartition(".")[2]

    def folder(self, directory: Path) -> Path:
        """Return the folder of its files.

        Raises:
            CheckpointError: it is outside the model directory.
        """
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts:
            raise CheckpointError(
                f"the folder {self.path} of a module is outside the model directory",
                file=str(directory / MODULES_FILE),
                hint="do not trust this model",
            )
        return directory / path


def read_modules(directory: Path) -> tuple[Module, ...] | None:
    """Return the modules of a model directory; None if it has no such file.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = directory / MODULES_FILE
    if not is_named(path):
        return None
    try:
        return msgspec.json.decode(read_bytes(path, max_bytes=MAX_BYTES), type=prepared(tuple[Module, ...]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"is not a list of modules: {error}", file=str(path), hint=DAMAGED) from error
