"""The plugin kinds, each with its hook, the type that the hook returns, and the names that it claims."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from llmd.api.errors import PluginError
from llmd.api.plugins import Architecture, Backend, Command, Dialect, Parser, Transport

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*\Z")


class Kind(msgspec.Struct, frozen=True):
    """One plugin kind."""

    name: str
    hook: str
    type: type[Any]
    """The type of the objects in the sequence that the hook returns."""
    naming: str
    """The field with the name or names that an object claims."""
    callables: tuple[str, ...]
    """The fields that must be callable."""
    texts: tuple[str, ...] = ()
    """The fields that must be text."""

    def names(self, described: Sequence[Any]) -> tuple[str, ...]:
        """Return the names that these objects claim, in order."""
        return tuple(name for one in described for name in self._names_of(one))

    def checked(self, returned: object) -> tuple[Any, ...]:
        """Check what a hook returned and return it as a tuple.

        Raises:
            PluginError: it is not a sequence of the kind's type, or a field of an object is invalid.
        """
        if not isinstance(returned, list | tuple):
            raise self._error(f"returned {type(returned).__name__}, not a sequence")
        for one in returned:
            self._check(one)
        names = self.names(returned)
        if twice := {name for name in names if names.count(name) > 1}:
            raise self._error(f"returned {', '.join(sorted(twice))} more than once")
        return tuple(returned)

    def _check(self, one: object) -> None:
        if not isinstance(one, self.type):
            raise self._error(f"returned a {type(one).__name__}, not a {self.type.__name__}")
        for name in self._names_of(one):
            if not isinstance(name, str) or not NAME.match(name):
                raise self._error(f"returned the {self.naming} {name!r}, which is not a valid name")
        for member in self.callables:
            if not callable(getattr(one, member)):
                raise self._error(f"returned a {self.type.__name__} whose {member} is not callable")
        for member in self.texts:
            if not isinstance(getattr(one, member), str):
                raise self._error(f"returned a {self.type.__name__} whose {member} is not a string")

    def _names_of(self, one: Any) -> tuple[Any, ...]:
        naming = getattr(one, self.naming)
        return tuple(naming) if isinstance(naming, list | tuple) else (naming,)

    def _error(self, what: str) -> PluginError:
        return PluginError(
            f"its hook {self.hook} {what}", hint="see docs/adding-a-backend.md for what the hook returns"
        )


KINDS = (
    Kind("backend", "llmd_backends", Backend, "name", ("probe", "open")),
    Kind("architecture", "llmd_architectures", Architecture, "names", ("plan",)),
    Kind("transport", "llmd_transports", Transport, "scheme", ("connect", "listen")),
    Kind("dialect", "llmd_dialects", Dialect, "name", ("routes",)),
    Kind("parser", "llmd_parsers", Parser, "name", ("matches", "load")),
    Kind("command", "llmd_commands", Command, "name", ("load",), ("help",)),
)
