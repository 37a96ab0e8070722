"""Settings that name a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llmd.api.errors import ConfigError
from llmd.config.setting_values import Origin

NAMED_PATHS = frozenset({"server.lora"})
"""Lists of paths with names, such as ``sql=adapters/sql``."""
PATHS = frozenset({"server.tls_cert", "server.tls_key", "client.ca_file"})


def absolute(key: str, value: Any, folder: Path) -> Any:
    """Return the value of a setting; if it names files, relative paths begin at ``folder``."""
    if key in NAMED_PATHS and isinstance(value, list):
        return [_named(one, folder) if isinstance(one, str) else one for one in value]
    if key in NAMED_PATHS and isinstance(value, str):
        return ",".join(_named(one, folder) for one in value.split(","))
    if key not in PATHS or not isinstance(value, str) or not value:
        return value
    return str(folder.absolute() / Path(value).expanduser())


def _named(text: str, folder: Path) -> str:
    name, equals, path = text.partition("=")
    is_whole = bool(equals and path.strip())
    return f"{name}={folder.absolute() / Path(path.strip()).expanduser()}" if is_whole else text


def missing_file(key: str, origin: Origin) -> ConfigError | None:
    """Return an error if a setting names a file that does not exist."""
    if key not in PATHS or not isinstance(origin.value, str) or Path(origin.value).is_file():
        return None
    return origin.placed(
        ConfigError(
            f"{key} from {origin.place}: there is no file {origin.value}",
            hint="create it, or correct the path there",
        )
    )
