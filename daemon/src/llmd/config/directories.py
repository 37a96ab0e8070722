"""The folders of llmd, following the XDG base directory specification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from platformdirs import PlatformDirs

LOG_NAME = "daemon.log"


class Directories(Struct, frozen=True):
    """The folders and files of a user and of the system."""

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
    def plugin_choices(self) -> Path:
        return self.config / "plugins.json"

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def conversations(self) -> Path:
        return self.data / "conversations"

    @property
    def log(self) -> Path:
        """The log of a daemon in the background."""
        return self.state / LOG_NAME

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Directories:
        """Return the folders of the user who runs this process."""
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
    """Return the folder for the socket.

    Without a login manager there is no runtime folder. Then it is the state folder, which is private, unlike
    /tmp.
    """
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    return Path(runtime) / "llmd" if Path(runtime).is_absolute() else state / "run"
