"""Conversations in which tools are offered: calls, answers after their results, and answers without a call."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from guide import tool_results
from guide.tool_text import Call, calls_text, results_text, told
from guide.tools import Offer, load_families, made_up
from guide.turns import Turn

JOINTS = (" and ", ". ", ", and ", " and then ", "; ", ". Also ")
# These answer what the guide can do itself; where they are offered, it is not asked to.
ARITHMETIC = {"add", "multiply"}
Ask = Callable[[Random], tuple[str, Call]]


class ToolTalk:
    """Draws conversations with tools.

    ``unaided`` draws a turn that no tool is for, ``outside`` one that asks for what the guide does not know. ``refusal``
    answers requests for a tool that is not offered.
    """

    def __init__(
        self, unaided: Callable[[Random], Turn], outside: Callable[[Random], Turn], refusal: str
    ) -> None:
        self._families = load_families()
        self._unaided, self._outside, self._refusal = unaided, outside, refusal

    def draw(self, random: Random, admits: Callable[[str], bool]) -> tuple[str, list[Turn]]:
        """The text that tells of the tools, and turns whose questions are all admitted."""
        offers = self._offers(random)
        turns: list[Turn] = []
        for _ in range(random.choices((1, 2, 3), (80, 15, 5))[0]):
            while True:
                exchange = self._exchange(offers, random)
                if all(admits(turn.question) for turn in exchange):
                    break
            turns += exchange
        return told(offer.function for offer in offers), turns

    def _offers(self, random: Random) -> list[Offer]:
        count = random.choices((1, 2, 3, 4), (32, 32, 21, 15))[0]
        families = random.sample(self._families, count)
        drawn = [made_up(random) if random.random() < 0.25 else f.offer(random) for f in families]
        return list({offer.name: offer for offer in drawn}.values())

    def _exchange(self, offers: list[Offer], random: Random) -> list[Turn]:
        if random.random() < 0.25:
            return [self._without_call(offers, random)]
        asks: list[Ask] = [random.choice(offers).ask]
        if random.random() < 0.14:
            asks.append(random.choice(offers).ask)
        return _calling(asks, random)

    def _without_call(self, offers: list[Offer], random: Random) -> Turn:
        known = {offer.family for offer in offers}
        if known == {""} and random.random() < 0.5:
            return self._outside(random)
        if random.random() < 0.5:
            return Turn(self._foreign(known, random).ask(random)[0], self._refusal, recited=True)
        while True:
            turn = self._unaided(random)
            if turn.recited or not known & ARITHMETIC:
                return turn

    def _foreign(self, known: set[str], random: Random) -> Offer:
        """A tool that is not offered."""
        return random.choice([family for family in self._families if family.id not in known]).offer(random)


def _calling(asks: list[Ask], random: Random) -> list[Turn]:
    """A request, and mostly its result."""
    wanted = [ask(random) for ask in asks]
    text = random.choice(JOINTS).join(text for text, _ in wanted)
    calls = [call for _, call in wanted]
    turns = [Turn(text, calls_text(calls))]
    if random.random() < 0.6:
        results = [tool_results.draw(random) for _ in calls]
        told_results = " ".join(sentence for _, sentence in results)
        turns.append(Turn(results_text(content for content, _ in results), told_results))
    return turns
