"""The files of the page, read from the package."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

from msgspec import Struct

START = "index.html"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class PageFile(Struct, frozen=True):
    """A file as it is served."""

    content: bytes
    type: str
    etag: str
    """Its hash, quoted as in the header."""


@functools.cache
def page_files() -> Mapping[str, PageFile]:
    """Return every file by its name. Blocks the first time."""
    folder = files("llmd.server.page") / "files"
    return {file.name: _read(file) for file in folder.iterdir() if suffix_of(file.name) in TYPES}


def _read(file: Traversable) -> PageFile:
    content = file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:32]
    return PageFile(content, TYPES[suffix_of(file.name)], f'"{digest}"')


def suffix_of(name: str) -> str:
    """Return the last suffix of a file name, with its dot."""
    return name[name.rfind(".") :] if "." in name else ""
