"""Which of the known names a typed name means. The daemon and every command use this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from llmd.registry.short_names import spellings

ANY = "*"


def matching(asked: str, aliases: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Return the names that ``asked`` may mean; several if it is ambiguous. ``*`` in an alias matches any
    text.
    """
    patterns = {alias: name for alias, name in aliases.items() if ANY in alias}
    known = {name: name for name in names} | {
        alias: name for alias, name in aliases.items() if alias not in patterns
    }
    for exact in spellings(asked):
        if exact in known:
            return [known[exact]]
    meant = [name for pattern, name in patterns.items() if fnmatchcase(asked, pattern)]
    if meant:
        return meant[:1]
    return sorted({target for name, target in known.items() if asked and name.startswith(asked)})
