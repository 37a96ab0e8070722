"""The certificates of this folder, by the paths of their files."""

from __future__ import annotations

import shutil
from pathlib import Path

from msgspec import Struct

FOLDER = Path(__file__).parent


class Pair(Struct, frozen=True):
    """A certificate and its private key."""

    chain: str
    key: str

    def copied_to(self, folder: Path) -> Pair:
        """Return the same pair as files in another folder, replacing the files there."""
        return Pair(
            shutil.copyfile(self.chain, str(folder / "certificate.pem")),
            shutil.copyfile(self.key, str(folder / "certificate.key")),
        )


def _pair(name: str) -> Pair:
    return Pair(str(FOLDER / f"{name}.pem"), str(FOLDER / f"{name}.key"))


FIRST, SECOND, EXPIRED = _pair("first"), _pair("second"), _pair("expired")
