"""Convert automata to regular expressions by state elimination."""

from __future__ import annotations

from msgspec import Struct

from llmd.api.errors import GrammarError
from llmd.grammar.texts.characters import LAST, Ranges, inverted, joined

MAX_PATTERN_LEN = 16 * 1024
_SPECIAL = frozenset("\\]^-[&~|.*+?(){}$")


class Automaton(Struct, frozen=True):
    """A deterministic automaton. States are numbers; 0 is the initial state."""

    steps: list[dict[int, Ranges]]
    """For each state, the characters that lead to each following state."""
    accepting: set[int]


def pattern_of(automaton: Automaton) -> str | None:
    """Return the regular expression of the whole texts that an automaton accepts; None if it accepts none.

    Raises:
        GrammarError: it is longer than `MAX_PATTERN_LEN`.
    """
    steps, accepting = _smallest(automaton)
    first, last = -1, -2
    edges: dict[int, dict[int, str]] = {
        state: {after: _class(ranges) for after, ranges in following.items()}
        for state, following in steps.items()
    }
    edges[first] = {0: ""}
    for state in accepting:
        edges[state][last] = ""
    while inner := [state for state in edges if state != first]:
        _take_out(min(inner, key=lambda state: _cost(edges, state)), edges)
    found = edges[first].get(last)
    return None if found is None else f"^(?:{found})$"


def _smallest(automaton: Automaton) -> tuple[dict[int, dict[int, Ranges]], set[int]]:
    """Minimize an automaton: remove dead states and merge equivalent ones. After Moore 1956."""
    alive = _alive(automaton)
    steps = [{after: ranges for after, ranges in one.items() if after in alive} for one in automaton.steps]
    block = {state: int(state in automaton.accepting) for state in alive}
    while True:
        shapes = {state: (block[state], _led(steps[state], block)) for state in alive}
        numbers = {shape: number for number, shape in enumerate(dict.fromkeys(shapes.values()))}
        finer = {state: numbers[shape] for state, shape in shapes.items()}
        if len(numbers) == len(set(block.values())):
            break
        block = finer
    if 0 not in alive:
        return {0: {}}, set()
    swap = {finer[0]: 0, 0: finer[0]}
    names = {state: swap.get(number, number) for state, number in finer.items()}
    merged = {names[state]: dict(_led(steps[state], names)) for state in alive}
    return merged, {names[state] for state in automaton.accepting}


def _led(following: dict[int, Ranges], block: dict[int, int]) -> frozenset[tuple[int, Ranges]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for after, ranges in following.items():
        found.setdefault(block[after], []).extend(ranges)
    return frozenset((number, joined(ranges)) for number, ranges in found.items())


def _alive(automaton: Automaton) -> set[int]:
    """Return the states that can reach an accepting state; all are reachable from the initial state."""
    alive = set(automaton.accepting)
    while more := {
        state
        for state, following in enumerate(automaton.steps)
        if state not in alive and not alive.isdisjoint(following)
    }:
        alive |= more
    return alive


def _cost(edges: dict[int, dict[int, str]], state: int) -> int:
    before = [one[state] for name, one in edges.items() if name != state and state in one]
    after = [text for name, text in edges[state].items() if name != state]
    own = len(edges[state].get(state, ""))
    return (
        sum(map(len, before)) * len(after)
        + sum(map(len, after)) * len(before)
        + own * len(before) * len(after)
    )


def _take_out(state: int, edges: dict[int, dict[int, str]]) -> None:
    following = edges.pop(state)
    own = following.pop(state, None)
    loop = "" if own is None else f"(?:{own})*"
    for others in edges.values():
        if state not in others:
            continue
        before = others.pop(state)
        for after, text in following.items():
            way = f"{_grouped(before)}{loop}{_grouped(text)}"
            others[after] = _either(others[after], way) if after in others else way
            if len(others[after]) > MAX_PATTERN_LEN:
                raise GrammarError(
                    "the JSON schema combines string patterns in a way that is too large to be enforced",
                    hint="use shorter patterns",
                )


def _either(one: str, other: str) -> str:
    if one == other:
        return one
    if not one or not other:
        return f"(?:{one or other})?"
    return f"{one}|{other}"


def _grouped(text: str) -> str:
    return f"(?:{text})" if "|" in text else text


def character_class(*signs: str, is_inverted: bool = False) -> str:
    """Return a character class of these characters, or of all others."""
    ranges = joined((ord(sign), ord(sign)) for sign in signs)
    return _class(inverted(ranges) if is_inverted else ranges)


def _class(ranges: Ranges) -> str:
    """Return a character class; an inverted one if it contains the last code point."""
    if ranges and ranges[-1][1] == LAST:
        others = inverted(ranges)
        return f"[^{_listed(others)}]" if others else r"[\s\S]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _sign(ranges[0][0])
    return f"[{_listed(ranges)}]"


def _listed(ranges: Ranges) -> str:
    return "".join(
        _sign(first) if first == last else f"{_sign(first)}-{_sign(last)}" for first, last in ranges
    )


def _sign(code: int) -> str:
    sign = chr(code)
    if code < 0x20 or 0x7F <= code < 0xA1:
        return f"\\x{code:02x}"
    return f"\\{sign}" if sign in _SPECIAL else sign
