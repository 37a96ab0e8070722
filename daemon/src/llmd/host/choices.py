"""What the user chose about plugins: which are disabled, and which were installed. A file of the user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import ConfigError
from llmd.config.private_file import replace_private_file


class Choices(msgspec.Struct, frozen=True):
    """The content of the file."""

    disabled: tuple[str, ...] = ()
    """Names of plugins that llmd must not use."""
    installed: Mapping[str, Mapping[str, str]] = {}
    """By prefix of an environment: distributions that `llmd plugins install` put there, and the name, path or
    URL that the user gave. An upgrade of llmd may remove them."""


class ChoicesFile(msgspec.Struct, frozen=True):
    """The file ``plugins.json`` in the configuration folder."""

    path: Path

    def load(self) -> Choices:
        """Return the choices; none if there is no file.

        Raises:
            ConfigError: the file cannot be read, or is not in the format that `_save` writes.
        """
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=prepared(Choices))
        except FileNotFoundError:
            return Choices()
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                f"{self.path} cannot be read: {error}", hint="fix it, or delete it to use every plugin"
            ) from error

    def set_enabled(self, plugin: str, *, enabled: bool) -> bool:
        """Enable or disable a plugin; return whether that was a change."""
        choices = self.load()
        if enabled != (plugin in choices.disabled):
            return False
        others = tuple(name for name in choices.disabled if name != plugin)
        disabled = others if enabled else (*others, plugin)
        self._save(msgspec.structs.replace(choices, disabled=disabled))
        return True

    def installed_in(self, prefix: Path) -> Mapping[str, str]:
        """Return what was installed into an environment: distributions, with what the user named."""
        return self.load().installed.get(str(prefix), {})

    def add_installed(self, prefix: Path, distribution: str, target: str) -> None:
        """Remember that a distribution was installed into an environment."""
        self._set_installed(prefix, {**self.installed_in(prefix), distribution: target})

    def remove_installed(self, prefix: Path, distribution: str) -> None:
        """Forget that a distribution was installed into an environment."""
        known = self.installed_in(prefix)
        if distribution in known:
            self._set_installed(prefix, {name: known[name] for name in known if name != distribution})

    def _set_installed(self, prefix: Path, installed: Mapping[str, str]) -> None:
        choices = self.load()
        others = {name: value for name, value in choices.installed.items() if name != str(prefix)}
        every = others | ({str(prefix): installed} if installed else {})
        self._save(msgspec.structs.replace(choices, installed=every))

    def _save(self, choices: Choices) -> None:
        content = msgspec.json.format(msgspec.json.encode(choices), indent=2)
        replace_private_file(self.path, content + b"\n")
