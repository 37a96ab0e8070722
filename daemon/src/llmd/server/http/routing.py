"""Finds the handler of a path. Forgives what users get wrong: doubled and trailing slashes, ``/v1`` twice or not at
all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from llmd.api.errors import PluginError
from llmd.api.plugins import Route

_PARAMETER = "/{id}"


class RouteTable:
    """Routes of all dialects. A path may end with ``/{id}``, which is the whole rest, slashes included."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Raises `PluginError` where two dialects claim one method and path."""
        self._exact: dict[str, dict[str, Route]] = {}
        self._prefixes: dict[str, dict[str, Route]] = {}
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        table, path = self._exact, route.path
        if path.endswith(_PARAMETER):
            table, path = self._prefixes, path.removesuffix("{id}")
        methods = table.setdefault(path, {})
        if route.method in methods:
            raise PluginError(
                f"two dialects serve {route.method} {route.path}", hint="remove one of the plugins"
            )
        methods[route.method] = route

    def methods(self, path: str) -> Mapping[str, Route]:
        """Every route of a path by method; empty for an unknown path."""
        path = normalized(path)
        return self._lookup(path) or self._lookup(f"/v1{path}")

    def _lookup(self, path: str) -> Mapping[str, Route]:
        if path in self._exact:
            return self._exact[path]
        longest_first = sorted(self._prefixes, key=len, reverse=True)
        return next((self._prefixes[prefix] for prefix in longest_first if path.startswith(prefix)), {})


class Match(Struct, frozen=True):
    """What a request asks for; ``allowed`` are the methods of its path."""

    route: Route | None
    allowed: frozenset[str]


def match(table: RouteTable, method: str, path: str) -> Match:
    """The route of a request. HEAD is answered as GET where it has no route; OPTIONS is answered everywhere."""
    methods = table.methods(path)
    allowed = set(methods) | ({"HEAD"} if "GET" in methods else set())
    route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
    return Match(route, frozenset(allowed | {"OPTIONS"}) if allowed else frozenset())


def normalized(path: str) -> str:
    """``path`` without doubled slashes, a slash at its end, or ``/v1`` said twice."""
    path = re.sub(r"/{2,}", "/", path)
    path = re.sub(r"^(/v1){2,}(?=/|$)", "/v1", path)
    return path.rstrip("/") or "/"
