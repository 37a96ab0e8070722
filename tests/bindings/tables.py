"""The tables of the library's sources: functions, constants and options."""

from __future__ import annotations

import re

from tests.bindings.building import SOURCES

HEADER = (SOURCES / "include" / "llmd.h").read_text()
CALLS = ("chat", "complete", "embed", "tokens")
_SETS = {
    "CALL_ANY": frozenset(CALLS),
    "CALL_READY": frozenset({"chat", "complete", "embed"}),
    "CALL_ANSWER": frozenset({"chat", "complete"}),
    "CALL_CHAT": frozenset({"chat"}),
    "CALL_EMBED": frozenset({"embed"}),
}
_OPTION = re.compile(r'^    \{"(\w+)", OPTION_(\w+), (\w+)\},$', re.MULTILINE)
_FUNCTION = re.compile(r"^[a-z][\w ]*(?:\* ?| )(llmd_\w+)\(", re.MULTILINE)
_CONSTANT = re.compile(r"^    (LLMD_\w+) = (\d+),?\s*/\* (.*?) \*/$", re.MULTILINE)

REQUEST_OPTIONS = {
    name: (kind, _SETS[calls])
    for name, kind, calls in _OPTION.findall((SOURCES / "src" / "request.c").read_text())
}
"""Kind and calls of the options of a request."""
DAEMON_OPTIONS = {name: kind for name, kind, _ in _OPTION.findall((SOURCES / "src" / "daemon.c").read_text())}
FUNCTIONS = _FUNCTION.findall(HEADER)
"""In the order of the header."""
CONSTANTS = {name: (int(number), meaning) for name, number, meaning in _CONSTANT.findall(HEADER)}
_EXPLAINED = re.compile(
    r"^/\* ((?:(?!\*/).)*) \*/\n(?:typedef [^\n]*\n)?[a-z][\w ]*(?:\* ?| )(llmd_\w+)\(",
    re.MULTILINE | re.DOTALL,
)
EXPLANATIONS = {
    name: " ".join(text.replace("\n *", " ").split()) for text, name in _EXPLAINED.findall(HEADER)
}
"""What the header says about each function."""
