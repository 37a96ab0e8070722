"""Finds the handler for a path. Tolerates doubled and trailing slashes, and a missing or doubled ``/v1``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aiohttp import web
from msgspec import Struct

from llmd.api.errors import PluginError
from llmd.api.plugins import Dialect, Route
from llmd.api.problem import ErrorShape

_PARAMETER = "/{id}"


class ServedDialect(Struct, frozen=True):
    """A dialect with its routes. ``errors`` is None if it writes errors as OpenAI does."""

    name: str
    routes: tuple[Route, ...]
    errors: ErrorShape | None

    @classmethod
    def of(cls, dialect: Dialect) -> ServedDialect:
        """Import the handlers of a dialect."""
        return cls(dialect.name, tuple(dialect.routes()), dialect.errors)


DIALECTS = web.AppKey("dialects", list[ServedDialect])
"""The dialects of an application."""


class RouteTable:
    """The routes of all dialects. A path may end with ``/{id}``, which matches the rest, slashes included."""

    def __init__(self, routes: Iterable[Route]) -> None:
        """Raises `PluginError` if two dialects serve the same method and path."""
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
        """Return the routes of a path by method; empty for an unknown path."""
        path = normalized(path)
        return self._lookup(path) or self._lookup(f"/v1{path}")

    def _lookup(self, path: str) -> Mapping[str, Route]:
        if path in self._exact:
            return self._exact[path]
        longest_first = sorted(self._prefixes, key=len, reverse=True)
        return next((self._prefixes[prefix] for prefix in longest_first if path.startswith(prefix)), {})


class Match(Struct, frozen=True):
    """The route of a request, if there is one, and the methods that its path allows."""

    route: Route | None
    allowed: frozenset[str]


def match(table: RouteTable, method: str, path: str) -> Match:
    """Find the route of a request. HEAD falls back to GET; OPTIONS is always allowed on known paths."""
    methods = table.methods(path)
    allowed = set(methods) | ({"HEAD"} if "GET" in methods else set())
    route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
    return Match(route, frozenset(allowed | {"OPTIONS"}) if allowed else frozenset())


def normalized(path: str) -> str:
    """Return ``path`` without doubled slashes, a trailing slash or a doubled ``/v1``."""
    path = re.sub(r"/{2,}", "/", path)
    path = re.sub(r"^(/v1){2,}(?=/|$)", "/v1", path)
    return path.rstrip("/") or "/"
