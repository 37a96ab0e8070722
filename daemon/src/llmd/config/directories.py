"""Where llmd keeps its files, after the XDG base directory specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from platformdirs import PlatformDirs


class Directories(Struct, frozen=True):
    """Folders and files of one user, and those of the system."""

    config: Path
    data: Path
    state: Path
    cache: Path
    user_socket: Path
    system_config: Path = Path("/etc/llmd/config.toml")
    system_socket: Path = Path("/run/llmd/llmd.sock")

    @property
    def user_config(self) -> Path:
        return self.config / "config.toml"

    @property
    def keys(self) -> Path:
        return self.config / "keys.json"

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def conversations(self) -> Path:
        return self.data / "conversations"

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Directories:
        """The folders of the user who runs this process."""
        dirs = PlatformDirs("llmd", appauthor=False)
        state = Path(dirs.user_state_dir)
        return cls(
            config=Path(dirs.user_config_dir),
            data=Path(dirs.user_data_dir),
            state=state,
            cache=Path(dirs.user_cache_dir),
            user_socket=_runtime(environ, state) / "llmd.sock",
        )


def _runtime(environ: Mapping[str, str], state: Path) -> Path:
    """Sessions without a login manager have no runtime folder; /tmp is not private, the state folder is."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    return Path(runtime) / "llmd" if Path(runtime).is_absolute() else state / "run"
