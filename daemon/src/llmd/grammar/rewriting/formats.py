"""String formats, and regular expressions of those that llguidance lacks or enforces too loosely.

Sources: RFC 3339 (dates and times; a leap second is at 23:59:60 in UTC), RFC 3986 and 3987 (URIs and IRIs),
RFC 6570 (URI templates), RFC 6901 (JSON pointers), RFC 6531 (email addresses).
"""

from __future__ import annotations

from typing import Any

from llmd.grammar.rewriting.combining import with_schema, without
from llmd.grammar.rewriting.scope import Scope

NATIVE = ("duration", "email", "hostname", "ipv4", "uri", "uuid")
"""Formats that llguidance enforces."""
REFUSED = ("idn-hostname", "regex")
"""Formats that regular expressions cannot describe."""

# Years from 0001: RFC 3339 allows 0000, but Python and many other languages have no such year.
_YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"
_CENTURY_LEAP = "(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = f"(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|{_CENTURY_LEAP}00)"
_DATE = (
    f"(?:{_YEAR}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|{_LEAP_YEAR}-02-29)"
)
_HOUR = "(?:[01][0-9]|2[0-3])"
_ZONE = f"(?:[zZ]|[+-]{_HOUR}:[0-5][0-9])"
_FRACTION = r"(?:\.[0-9]+)?"
_TIME = f"(?:{_HOUR}:[0-5][0-9]:[0-5][0-9]{_FRACTION}{_ZONE}|23:59:60{_FRACTION}(?:[zZ]|[+-]00:00))"

_BYTE = "%[0-9a-fA-F]{2}"
_IPV4 = r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_H16 = "[0-9a-fA-F]{1,4}"
_TAIL = f"(?:{_H16}:{_H16}|{_IPV4})"
"""The last 32 bits of an IPv6 address."""
_IPV6 = "|".join((
    f"(?:{_H16}:){{6}}{_TAIL}",
    *(
        f"(?:(?:{_H16}:){{0,{before - 1}}}{_H16})?::(?:{_H16}:){{{5 - before}}}{_TAIL}" if before else f"::(?:{_H16}:){{5}}{_TAIL}"
        for before in range(6)
    ),
    f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
    f"(?:(?:{_H16}:){{0,6}}{_H16})?::",
))  # fmt: skip
_WIDE = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\u{10000}-\u{efffd}"
_LETTER = r"a-zA-Z0-9"


def _reference(wide: str, *, may_be_relative: bool) -> str:
    """Return the pattern of a URI; with ``may_be_relative`` also of relative references.

    ``wide`` are the allowed characters beyond ASCII.
    """
    plain = rf"{_LETTER}\-._~!$&'()*+,;={wide}"
    segment = f"(?:[{plain}:@]|{_BYTE})"
    host = rf"(?:\[(?:{_IPV6}|v[0-9a-fA-F]+\.[{plain}:]+)\]|(?:[{plain}]|{_BYTE})*)"
    authority = f"//(?:(?:[{plain}:]|{_BYTE})*@)?{host}(?::[0-9]*)?(?:/{segment}*)*"
    absolute = f"/(?:{segment}+(?:/{segment}*)*)?"
    tail = rf"(?:\?(?:[{plain}:@/?]|{_BYTE})*)?(?:#(?:[{plain}:@/?]|{_BYTE})*)?"
    rootless = f"{segment}+(?:/{segment}*)*"
    uri = rf"[a-zA-Z][a-zA-Z0-9+\-.]*:(?:{authority}|{absolute}|{rootless})?{tail}"
    if not may_be_relative:
        return uri
    relative = f"(?:[{plain}@]|{_BYTE})+(?:/{segment}*)*"
    return f"(?:{uri}|(?:{authority}|{absolute}|{relative})?{tail})"


_NAME = rf"(?:[{_LETTER}_]|{_BYTE})"
_VARIABLE = rf"{_NAME}(?:\.?{_NAME})*(?::[1-9][0-9]{{0,3}}|\*)?"
_TEMPLATE = (
    rf"(?:[^\x00-\x20\x22'%<>\\^`{{|}}\x7f]|{_BYTE}|\{{[+#./;?&=,!@|]?{_VARIABLE}(?:,{_VARIABLE})*\}})*"
)
_POINTER = "(?:/(?:[^~/]|~[01])*)*"
_ATOM = rf"[{_LETTER}!#$%&'*+\-/=?^_`{{|}}~{_WIDE}]+"
_LABEL = rf"[{_LETTER}{_WIDE}](?:[{_LETTER}\-{_WIDE}]*[{_LETTER}{_WIDE}])?"

PATTERNS = {
    "date": _DATE,
    "date-time": f"{_DATE}[tT]{_TIME}",
    "idn-email": rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*",
    "iri": _reference(_WIDE, may_be_relative=False),
    "iri-reference": _reference(_WIDE, may_be_relative=True),
    "ipv6": f"(?:{_IPV6})",
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
    "time": _TIME,
    "uri-reference": _reference("", may_be_relative=True),
    "uri-template": _TEMPLATE,
}


def is_known(name: Any) -> bool:
    """Return whether the specification defines a format; all others are only annotations."""
    return name in PATTERNS or name in NATIVE or name in REFUSED


def pattern_of_format(name: str) -> str | None:
    """Return the regular expression of a format; None if `PATTERNS` has none."""
    return f"^(?:{PATTERNS[name]})$" if name in PATTERNS else None


def without_format(schema: dict[str, Any], scope: Scope) -> dict[str, Any]:
    """Rewrite ``format`` to a pattern if llguidance does not enforce the format exactly."""
    name = schema["format"]
    if name in REFUSED:
        raise scope.refusal(f"format {name}")
    pattern = pattern_of_format(name)
    if pattern is None:
        return schema
    rest = without(schema, "format")
    return rest | {"pattern": pattern} if "pattern" not in rest else with_schema(rest, {"pattern": pattern})
