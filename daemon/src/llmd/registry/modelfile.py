"""Reads Modelfiles, the text files from which Ollama creates models.

The format is described in Ollama's documentation: a line begins with a command; its value may be quoted, and
goes over several lines between two times three quotes. Lines that begin with ``#`` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from llmd.api.errors import ConfigError

TRIPLE = '"""'
ROLES = ("system", "user", "assistant")
STRINGS = frozenset({"stop"})
"""Parameters that may be given several times, and whose values are texts."""
# Begins an action in a Go template, but is not valid in a Jinja template.
_GO_TEMPLATE = re.compile(r"\{\{-?\s*(?:\.|\$|/\*|(?:if|else|end|range|with|block|define|template)\b)")
_COMMAND = re.compile(r"\s*([A-Za-z]+)[ \t]+(.*)", re.DOTALL)


class Modelfile(msgspec.Struct):
    """What a Modelfile says."""

    base: str = ""
    """The model or path after ``FROM``."""
    parameters: dict[str, Any] = {}
    """Options by Ollama's names, with numbers as numbers."""
    template: str = ""
    system: str = ""
    licenses: list[str] = []
    messages: list[dict[str, str]] = []
    adapters: list[str] = []
    requires: str = ""
    """The version of Ollama that it was written for."""
    lines: dict[str, int] = {}
    """The line of each parameter; of one that is given several times, the last."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of ``POST /api/create``, without those that are empty."""
        known = {
            "from": self.base,
            "parameters": self.parameters,
            "template": self.template,
            "system": self.system,
            "license": self.licenses,
            "messages": self.messages,
            "adapters": dict.fromkeys(self.adapters, ""),
        }
        return {name: value for name, value in known.items() if value}


def read_modelfile(text: str, name: str = "the Modelfile") -> Modelfile:
    """Parse a Modelfile. ``name`` is used in errors.

    Raises:
        ConfigError: a line cannot be understood, or ``FROM`` is missing; the message has the line's number.
    """
    found = Modelfile()
    for number, command, value in _commands(text, name):
        try:
            _take(found, command, value)
            if command == "parameter":
                found.lines[value.split(" ")[0]] = number
        except ValueError as error:
            raise ConfigError(
                f"{name}:{number}: {error}", hint="`llmd create --help` lists the commands of a Modelfile"
            ) from None
    if not found.base:
        raise ConfigError(f"{name} names no model", hint="begin it with FROM and the name or path of a model")
    return found


def is_go_template(text: str) -> bool:
    """Return whether a template is written for Go, as Ollama's are; llmd renders Jinja."""
    return _GO_TEMPLATE.search(text) is not None and "{%" not in text


def _commands(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, command in lower case and value of each command."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _COMMAND.fullmatch(line.rstrip())
        if match is None:
            raise ConfigError(
                f"{name}:{number}: {line.strip()[:40]!r} is no command with a value",
                hint="text of several lines goes between two lines of three quotes",
            )
        yield number, match[1].lower(), _value(match[2], lines, f"{name}:{number}")


def _value(begun: str, lines: Iterator[tuple[int, str]], where: str) -> str:
    """Return a value without its quotes, reading on to the end of one between triple quotes."""
    before, opening, rest = begun.partition(TRIPLE)
    if not opening or (before and not _is_word(before)):
        return before_quotes(begun.strip())
    parts = [rest]
    while TRIPLE not in parts[-1]:
        number_and_line = next(lines, None)
        if number_and_line is None:
            raise ConfigError(f"{where}: the text has no end", hint='end it with """')
        parts.append(number_and_line[1])
    return before + "\n".join(parts).partition(TRIPLE)[0]


def _is_word(text: str) -> bool:
    """Whether a text is the first word of a value, such as the role of a message."""
    return bool(text.strip()) and " " not in text.strip()


def before_quotes(value: str) -> str:
    """Return a value of one line without quotes around it."""
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value


def _take(found: Modelfile, command: str, value: str) -> None:
    """Add a command to what was found.

    Raises:
        ValueError: the command or its value cannot be understood.
    """
    match command:
        case "from":
            found.base = value
        case "template":
            found.template = value
        case "system":
            found.system = value
        case "license":
            found.licenses.append(value)
        case "adapter":
            found.adapters.append(value)
        case "requires":
            found.requires = value
        case "parameter":
            _take_parameter(found, value)
        case "message":
            role, _, content = value.partition(" ")
            if role not in ROLES or not content.strip():
                raise ValueError(f"a message has a role ({', '.join(ROLES)}) and a text")
            found.messages.append({"role": role, "content": before_quotes(content.strip())})
        case _:
            raise ValueError(
                f"{command.upper()} is not one of FROM, PARAMETER, TEMPLATE, SYSTEM, LICENSE, MESSAGE, ADAPTER, "
                "REQUIRES"
            )


def _take_parameter(found: Modelfile, value: str) -> None:
    name, _, text = value.partition(" ")
    text = before_quotes(text.strip())
    if not text:
        raise ValueError(f"the parameter {name} has no value")
    if name in STRINGS:
        found.parameters.setdefault(name, []).append(text)
    else:
        found.parameters[name] = _number(text)


def _number(text: str) -> int | float | bool | str:
    if text in {"true", "false"}:
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
