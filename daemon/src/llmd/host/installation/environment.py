"""The environment that llmd is installed in, and which program made it."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import site
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from llmd.api.errors import NotPermittedError, PluginError
from llmd.host.names import CORE_DISTRIBUTION, canonical
from llmd.host.source import recorded_source

MadeBy = Literal["pipx", "uv tool", "checkout", "venv", "user", "system"]
"""``user``: `pip install --user` put llmd into a folder that all programs of this user share."""
OWN_ENVIRONMENT = "install llmd into an environment of its own, such as `python3 -m venv ~/llmd` creates; the README shows how"


class Environment(msgspec.Struct, frozen=True):
    """A Python environment."""

    prefix: Path
    site: Path
    """Folder of installed modules, below ``prefix``."""
    made_by: MadeBy
    managed_by_system: bool = False
    """Whether the operating system forbids other installers to change it (PEP 668)."""

    @classmethod
    def current(cls) -> Environment:
        """Return the environment of this process."""
        prefix = Path(sys.prefix)
        is_system = sys.prefix == sys.base_prefix
        core = metadata.distribution(CORE_DISTRIBUTION)
        marker = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
        return cls(
            prefix=prefix,
            site=Path(sysconfig.get_path("purelib")),
            made_by="user"
            if is_for_user(Path(str(core.locate_file(""))))
            else maker(prefix, is_system=is_system, is_editable=core_is_editable(core)),
            managed_by_system=is_system and marker.exists(),
        )

    def check_changeable(
        self, command: str, is_writable: Callable[[Path], bool] = lambda path: os.access(path, os.W_OK)
    ) -> None:
        """Check that this user may install into the environment with ``command``, as the user typed it.

        Raises:
            NotPermittedError: the system or the folder forbids it; the hint says what to run.
            PluginError: llmd is not in the environment, but in a folder that programs of this user share.
        """
        if self.made_by == "user":
            raise PluginError(
                "llmd was installed with `pip install --user`, into a folder that other programs use too;"
                " there llmd cannot undo a change",
                hint=OWN_ENVIRONMENT,
            )
        if self.managed_by_system:
            raise NotPermittedError(
                f"the Python at {self.prefix} belongs to the operating system,"
                " which lets no other program install into it",
                hint=OWN_ENVIRONMENT,
            )
        if is_writable(self.site):
            return
        owner = pwd.getpwuid(self.site.stat().st_uid).pw_name
        program = shlex.quote(str(self.prefix / "bin" / "llmd"))
        mine = self.site.stat().st_uid == os.geteuid()
        raise NotPermittedError(
            f"llmd is installed in {self.prefix}, which you may not change",
            hint=f"{self.site} is read-only: make it writable and run the command again"
            if mine
            else f"run `sudo -u {owner} {program} {command}`",
        )

    def upgrade_note(self, requirement: str) -> str:
        """Say how a plugin survives an upgrade of llmd; empty if an upgrade keeps it."""
        known, target = self._known(), shlex.quote(requirement)
        if canonical(requirement) in known or requirement in known.values():
            return ""
        if self.made_by == "pipx":
            return (
                "`pipx upgrade` keeps the plugin, `pipx reinstall` removes it unless you run:"
                f" pipx inject --force {self.prefix.name} {target}"
            )
        if self.made_by == "uv tool":
            return (
                "`uv tool upgrade` removes plugins that uv does not know; to keep this one, run:"
                f" uv tool install {self.prefix.name}{_with(known.values())} --with {target}"
            )
        if self.made_by == "checkout":
            return "`make setup` removes the plugin when dependencies change; install it again after that"
        return ""

    def removal_note(self, distribution: str) -> str:
        """Say how a removed plugin stays away after an upgrade of llmd; empty if nothing brings it back."""
        name, known = canonical(distribution), self._known()
        if name not in known:
            return ""
        if self.made_by == "pipx":
            return f"pipx still knows the plugin; run: pipx uninject {self.prefix.name} {name}"
        kept = _with(wanted for other, wanted in known.items() if other != name)
        return f"uv still knows the plugin; run: uv tool install {self.prefix.name}{kept}"

    def _known(self) -> dict[str, str]:
        """Return what pipx or uv installs along with llmd: distributions, with what a user passes to it."""
        if self.made_by == "pipx":
            about = json.loads((self.prefix / "pipx_metadata.json").read_text())
            return {canonical(name): name for name in about.get("injected_packages", {})}
        if self.made_by != "uv tool":
            return {}
        receipt = tomllib.loads((self.prefix / "uv-receipt.toml").read_text())
        wanted = receipt.get("tool", {}).get("requirements", [])
        return {
            canonical(one["name"]): one.get("url")
            or one.get("path")
            or one["name"] + one.get("specifier", "")
            for one in wanted[1:]
        }


def _with(wanted: Iterable[str]) -> str:
    """Return the options of uv that install these along with a tool."""
    return "".join(f" --with {shlex.quote(one)}" for one in wanted)


def maker(prefix: Path, *, is_system: bool, is_editable: bool) -> MadeBy:
    """Return which program made an environment, judging by the file that it left there."""
    if (prefix / "pipx_metadata.json").exists():
        return "pipx"
    if (prefix / "uv-receipt.toml").exists():
        return "uv tool"
    if is_editable:
        return "checkout"
    return "system" if is_system else "venv"


def is_for_user(folder: Path) -> bool:
    """Whether a folder of modules is the one that `pip install --user` uses."""
    return folder.resolve() == Path(site.getusersitepackages()).resolve()


def core_is_editable(core: metadata.Distribution) -> bool:
    """Whether llmd runs from a checkout, as after ``make setup``."""
    source = recorded_source(core)
    return source is not None and source.editable
