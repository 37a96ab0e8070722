"""Sets of texts with union, intersection and complement, and their regular expressions.

A set is an expression over characters. Its derivatives are the states of its automaton; eliminating the
states one by one leaves a regular expression. Each text ends with a mark, which ``$`` matches.

Sources: Brzozowski 1964, "Derivatives of Regular Expressions"; Owens, Reppy, Turon 2009, "Regular-expression
derivatives re-examined"; Brzozowski and McCluskey 1963, "Signal Flow Graph Techniques for Sequential Circuit
State Diagrams".
"""

from __future__ import annotations

from collections.abc import Iterable

from llmd.api.errors import GrammarError
from llmd.grammar.texts.automaton import Automaton, pattern_of
from llmd.grammar.texts.characters import BEGIN, CHARACTERS, END, Ranges, classes
from llmd.grammar.texts.expressions import Expression, Expressions
from llmd.grammar.texts.regex_reader import read_regex

MAX_STATES = 300


class TextSets:
    """Creates sets; only sets of the same instance can be combined."""

    def __init__(self) -> None:
        self._make = make = Expressions()
        self._texts = make.sequence(make.repeat(make.characters(CHARACTERS)), make.characters(END))

    @property
    def size(self) -> int:
        """The work done so far, in hundreds of expressions."""
        return self._make.count // 100

    @property
    def everything(self) -> Expression:
        """All texts."""
        return self._texts

    @property
    def nothing(self) -> Expression:
        """No text."""
        return self._make.nothing

    def literals(self, texts: Iterable[str]) -> Expression:
        """Return the set of some texts."""
        make = self._make
        end = make.characters(END)
        return make.union(make.sequence(make.literal(text), end) for text in texts)

    def lengths(self, least: int, most: int | None) -> Expression:
        """Return the texts of ``least`` to ``most`` characters.

        Raises:
            GrammarError: a bound is too large.
        """
        if max(least, most or 0) > MAX_STATES:
            raise _too_large()
        make = self._make
        one = make.characters(CHARACTERS)
        more = make.repeat(one) if most is None else make.optional([one] * (most - least))
        return make.sequence(*[one] * least, more, make.characters(END))

    def matching(self, pattern: str) -> Expression:
        """Return the texts in which a regular expression of JavaScript matches somewhere.

        Raises:
            GrammarError: it uses an unsupported feature, such as look-around.
        """
        make = self._make
        free = make.repeat(make.characters((*CHARACTERS, *BEGIN, *END)))
        anywhere = make.sequence(free, read_regex(pattern, make), free)
        return make.intersection([make.derivative(anywhere, BEGIN[0][0]), self._texts])

    def union(self, *sets: Expression) -> Expression:
        """Return the texts that are in any of the sets."""
        return self._make.union(sets)

    def intersection(self, *sets: Expression) -> Expression:
        """Return the texts that are in all sets."""
        return self._make.intersection([self._texts, *sets])

    def complement(self, texts: Expression) -> Expression:
        """Return the texts that are not in a set."""
        return self._make.intersection([self._make.complement(texts), self._texts])

    def pattern(self, texts: Expression) -> str | None:
        """Return the regular expression of a set, for whole texts; None if the set is empty.

        Raises:
            GrammarError: it is too large.
        """
        return pattern_of(self._automaton(texts))

    def is_empty(self, texts: Expression) -> bool:
        """Return whether the set is empty."""
        return not self._automaton(texts).accepting

    def _automaton(self, start: Expression) -> Automaton:
        make = self._make
        numbers = {start: 0}
        steps: list[dict[int, Ranges]] = []
        waiting = [start]
        signs = classes(make.ranges(start))
        while waiting:
            state = waiting.pop(0)
            found: dict[int, Ranges] = {}
            for ranges in signs:
                after = make.derivative(state, ranges[0][0])
                if after is make.nothing:
                    continue
                if after not in numbers:
                    numbers[after] = len(numbers)
                    waiting.append(after)
                found[numbers[after]] = (*found.get(numbers[after], ()), *ranges)
            steps.append(found)
            if len(numbers) > MAX_STATES:
                raise _too_large()
        accepting = {
            number for state, number in numbers.items() if make.derivative(state, END[0][0]).is_nullable
        }
        return Automaton(steps, accepting)


def _too_large() -> GrammarError:
    return GrammarError(
        "the JSON schema combines patterns and lengths of strings in a way that is too large to be enforced",
        hint="use shorter patterns and smaller lengths",
    )
