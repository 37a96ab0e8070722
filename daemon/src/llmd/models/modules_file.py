"""``modules.json``: what sentence-transformers does with a model's output, one module after the other."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import msgspec

from llmd.api.errors import CheckpointError
from llmd.models.files import is_named, read_bytes
from llmd.models.json_file import DAMAGED

MODULES_FILE = "modules.json"
MAX_BYTES = 1_000_000
SCORE = "LogitScore"
"""The kind that makes two logits of a generating model a score: such a model embeds nothing."""


class Module(msgspec.Struct, frozen=True):
    """A module by the name of its class; ``path`` is the folder of its files, empty for the model's own."""

    type: str
    path: str = ""

    @property
    def is_root(self) -> bool:
        """Whether its files are the model's own."""
        return self.path in ("", ".")

    @property
    def kind(self) -> str:
        """The last part of the class's name, which is all that never changes."""
        return self.type.rpartition(".")[2]

    def folder(self, directory: Path) -> Path:
        """The folder of its files.

        Raises:
            CheckpointError: it lies outside of the model's directory.
        """
        path = PurePosixPath(self.path)
        if path.is_absolute() or ".." in path.parts:
            raise CheckpointError(
                f"the folder {self.path} of a module lies outside of the model",
                file=str(directory / MODULES_FILE),
                hint="do not trust this model",
            )
        return directory / path


def read_modules(directory: Path) -> tuple[Module, ...] | None:
    """The modules of a model directory, None where it has no such file.

    Raises:
        CheckpointError: the file is damaged.
    """
    path = directory / MODULES_FILE
    if not is_named(path):
        return None
    try:
        return msgspec.json.decode(read_bytes(path, max_bytes=MAX_BYTES), type=tuple[Module, ...])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CheckpointError(f"is no list of modules: {error}", file=str(path), hint=DAMAGED) from error
