"""What the daemon says about settings: which values it accepts, and those of a model."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import Daemon
from llmd_tui.screens.chat.generation_settings import NUMBERS, listed
from llmd_tui.screens.chat.request_body import ROUTE
from llmd_tui.screens.chat.store.records import Settings

OLLAMA_NAMES = {"num_predict": "max_tokens", "repeat_penalty": "repetition_penalty"}
"""Names in Modelfiles, and those of the settings here, where they differ."""


class Range(msgspec.Struct, frozen=True, rename="camel"):
    """The numbers that a field of a request may have, as a JSON schema says it; None: no bound."""

    minimum: float | None = None
    exclusive_minimum: float | None = None
    maximum: float | None = None

    def check(self, name: str, value: float) -> None:
        """Check a value.

        Raises:
            LlmdError: it is outside.
        """
        is_low = self.minimum is not None and value < self.minimum
        is_least = self.exclusive_minimum is not None and value <= self.exclusive_minimum
        if is_low or is_least or (self.maximum is not None and value > self.maximum):
            raise LlmdError(f"{name} must be {self.words}, not {value:g}")

    @property
    def words(self) -> str:
        """The bounds, for people."""
        bounds = {
            "at least": self.minimum,
            "greater than": self.exclusive_minimum,
            "at most": self.maximum,
        }
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)


Ranges = Mapping[str, Range]


async def accepted_ranges(daemon: Daemon) -> Ranges:
    """Return the ranges of the settings by name; empty if the daemon does not describe its routes."""
    try:
        described = await daemon.get("/openapi.json")
        body = described["paths"][ROUTE]["post"]["requestBody"]["content"]["application/json"]
        return msgspec.convert(body["schema"]["properties"], prepared(dict[str, Range]))
    except (LlmdError, LookupError, TypeError, msgspec.ValidationError):
        return {}


async def model_values(daemon: Daemon, model: str) -> Mapping[str, str]:
    """Return the values that a model has for settings, from its files or its Modelfile, as text."""
    try:
        described = await daemon.post("/api/show", {"model": model})
    except LlmdError:
        return {}
    return dict(_value(line) for line in str(described.get("parameters") or "").splitlines() if line.strip())


def checked(settings: Settings, ranges: Ranges) -> Settings:
    """Return the settings, whose numbers the daemon accepts.

    Raises:
        LlmdError: the daemon would refuse one of them.
    """
    for name in NUMBERS:
        value = getattr(settings, name)
        if value is not None and name in ranges:
            ranges[name].check(name, value)
    return settings


def applied(settings: Settings, values: Mapping[str, str]) -> str:
    """Say which settings apply: those of the chat, and the model's ``values`` for the others."""
    others = [f"{name} {value}" for name, value in values.items() if getattr(settings, name, None) is None]
    of_model = ", ".join(others)
    if own := listed(settings):
        return f"{own}; the model's: {of_model}" if of_model else own
    return f"Every setting is the model's: {of_model}." if of_model else "Every setting is the model's."


def _value(line: str) -> tuple[str, str]:
    name, _, value = line.strip().partition(" ")
    return OLLAMA_NAMES.get(name, name), value.strip()
