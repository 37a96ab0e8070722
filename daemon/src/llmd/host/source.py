"""Where a distribution was installed from, as PEP 610 records it: a folder, a wheel or a URL."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

FILE = "direct_url.json"


class Source(msgspec.Struct, frozen=True):
    """What a distribution was installed from, if not from a package index."""

    place: str
    """A path or a URL."""
    editable: bool = False
    """Whether Python imports the files of that folder itself."""


def source_of(distribution: str) -> Source | None:
    """Return what an installed distribution was installed from; None: a package index, or it is not known."""
    try:
        return recorded_source(metadata.distribution(distribution))
    except metadata.PackageNotFoundError:
        return None


def recorded_source(distribution: metadata.Distribution) -> Source | None:
    """Return the same for the metadata of a distribution."""
    try:
        record = json.loads(distribution.read_text(FILE) or "null")
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("url"), str):
        return None
    url = urlsplit(record["url"])
    place = unquote(url.path) if url.scheme == "file" else record["url"]
    return Source(place, editable=bool(record.get("dir_info", {}).get("editable")))


def record_source(info: Path, place: str) -> None:
    """Write a path or URL into the metadata folder ``info`` of a distribution, and list the file there."""
    path = Path(place)
    is_path = path.is_absolute()
    kind = "dir_info" if is_path and path.is_dir() else "archive_info"
    content = json.dumps({"url": path.as_uri() if is_path else place, kind: {}}).encode()
    (info / FILE).write_bytes(content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    with (info / "RECORD").open("a") as file:
        file.write(f"{info.name}/{FILE},sha256={digest},{len(content)}\n")
