"""What a release consists of, and checks of its files that run nothing."""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from zipfile import ZipFile

from tools.release.build import NATIVE_DISTRIBUTION
from tools.release.rules import ReleaseError
from tools.release.targets import Target

PURE = ("llmd_daemon", "llmd_backend_cuda", "llmd_backend_vulkan", "llmd_transport", "llmd_tui")
THIRD_PARTY = ("licences/nanobind.txt", "licences/robin-map.txt")
"""The licences of what the extension contains."""
SUMS = "SHA256SUMS"


def expected(version: str, targets: Iterable[Target]) -> list[str]:
    """Return a pattern for each file of a release."""
    return [
        *(f"{name}-{version}.tar.gz" for name in (*PURE, NATIVE_DISTRIBUTION, "libllmd")),
        *(f"{name}-{version}-py3-none-any.whl" for name in PURE),
        *(
            f"{NATIVE_DISTRIBUTION}-{version}-{target.tag}-manylinux_2_*_{target.machine}.whl"
            for target in targets
        ),
    ]


def compare(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return a message for each pattern without its one file, and for each file without a pattern."""
    names, patterns = sorted(names), list(patterns)
    faults = [
        f"{pattern}: {count} files instead of one"
        for pattern in patterns
        if (count := sum(fnmatch(name, pattern) for name in names)) != 1
    ]
    strangers = [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)]
    return [*faults, *(f"{name}: not part of a release" for name in strangers)]


def check_contents(package: Path, version: str, forbidden: str) -> None:
    """Check version and licences of a wheel or source package, and that no file names the build folder.

    Raises:
        ReleaseError: a check failed.
    """
    contents = read_contents(package)
    metadata = next(
        (text for name, text in contents.items() if re.search(r"(METADATA|PKG-INFO)$", name)), b""
    )
    if f"\nVersion: {version}\n".encode() not in metadata:
        raise ReleaseError(f"{package.name}: its metadata do not state version {version}")
    is_native = package.name.startswith(NATIVE_DISTRIBUTION)
    for wanted in ("LICENSE", *(THIRD_PARTY if is_native else ())):
        if not any(name.endswith(f"/{wanted}") for name in contents):
            raise ReleaseError(f"{package.name}: it contains no {wanted}")
    if named := [name for name, text in contents.items() if forbidden.encode() in text]:
        raise ReleaseError(f"{package.name}: {', '.join(named)} contains the path {forbidden}")


def read_contents(package: Path) -> dict[str, bytes]:
    """Return the files of a wheel or of a source package."""
    if package.suffix == ".whl":
        with ZipFile(package) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(package) as archive:
        members = [(member.name, archive.extractfile(member)) for member in archive if member.isfile()]
        return {name: file.read() for name, file in members if file is not None}


def write_sums(folder: Path) -> None:
    """Write the checksums of all files, as `sha256sum --check` reads them."""
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(folder.iterdir())
        if path.name != SUMS
    ]
    (folder / SUMS).write_text("".join(lines))
