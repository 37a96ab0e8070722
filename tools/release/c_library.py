"""The source archive of libllmd, the C library."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

from tools.release.build import run

CONTENTS = {
    "LICENSE": "LICENSE",
    "docs/c-api.md": "README.md",
    **{
        f"bindings/c/{name}": name
        for name in ("Makefile", "llmd.map", "llmd.pc.in", "include", "src", "examples")
    },
}
"""Files and folders of the archive by their place in the sources."""


def pack_library(sources: Path, version: str, out: Path, epoch: int) -> Path:
    """Write ``libllmd-VERSION.tar.gz`` with the same bytes for the same sources."""
    path = out / f"libllmd-{version}.tar.gz"
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for source, name in sorted(CONTENTS.items()):
            for file in files_below(sources / source):
                inside = Path(f"libllmd-{version}") / name / file.relative_to(sources / source)
                _add(archive, file, inside.as_posix(), epoch)
    with path.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as compressed:
        compressed.write(packed.getvalue())
    return path


def try_library(archive: Path, scratch: Path) -> None:
    """Build the library from its archive."""
    with tarfile.open(archive) as packed:
        packed.extractall(scratch / "library", filter="data")
    (folder,) = (scratch / "library").iterdir()
    run(["make", "--silent", f"--directory={folder}", "install", f"PREFIX={scratch / 'installed'}"])


def files_below(entry: Path) -> list[Path]:
    """Return ``entry`` itself, or the files below it, in a fixed order."""
    return sorted(path for path in entry.rglob("*") if path.is_file()) if entry.is_dir() else [entry]


def _add(archive: tarfile.TarFile, file: Path, name: str, epoch: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = file.stat().st_size, epoch, 0o644
    with file.open("rb") as content:
        archive.addfile(member, content)
