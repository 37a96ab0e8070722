"""Conversations in which tools are offered:
calls, answers after their results, and answers without a call.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from guide import tool_results
from guide.made_up_tools import made_up
from guide.tool_text import Call, calls_text, results_text, told
from guide.tools import Offer, load_families
from guide.turns import Turn

JOINTS = (" and ", ". ", ", and ", " and then ", "; ", ". Also ")
# These do what the guide can do itself; if they are offered, the guide is not asked to do it.
ARITHMETIC = {"add", "multiply"}
# These may answer questions about the world;
# if they are offered, no question is asked that the guide must refuse.
KNOWING = {"websearch", "news", "country", "weather", "forecast", "clock", "recipe", "translate", "route", "distance", "stock", "currency", "units", "music", "product"}  # fmt: skip
Ask = Callable[[Random], tuple[str, Call]]


class ToolTalk:
    """Draws conversations with tools.

    ``unaided`` draws a turn that no tool is for, ``outside`` one that asks for what the guide does not know.
    ``refusal`` answers requests for a tool that is not offered.
    """

    def __init__(
        self, unaided: Callable[[Random], Turn], outside: Callable[[Random], Turn], refusal: str
    ) -> None:
        self._families = load_families()
        self._unaided, self._outside, self._refusal = unaided, outside, refusal

    def draw(self, random: Random, admits: Callable[[str], bool]) -> tuple[str, list[Turn]]:
        """Return the text that describes the tools, and turns whose questions are all admitted."""
        offers = self._offers(random)
        turns: list[Turn] = []
        for _ in range(random.choices((1, 2, 3), (50, 33, 17))[0]):
            while True:
                exchange = self._exchange(offers, random)
                if all(admits(turn.question) for turn in exchange):
                    break
            turns += exchange
        return told(offer.function for offer in offers), turns

    def _offers(self, random: Random) -> list[Offer]:
        count = random.choices((1, 2, 3, 4), (28, 40, 20, 12))[0]
        drawn: list[Offer] = []
        for family in random.sample(self._families, count):
            like = drawn[-1].name if drawn and random.random() < 0.4 else None
            drawn.append(made_up(random, like) if random.random() < 0.6 else family.offer(random))
        return list({offer.name: offer for offer in drawn}.values())

    def _exchange(self, offers: list[Offer], random: Random) -> list[Turn]:
        if random.random() < 0.3:
            return [self._without_call(offers, random)]
        asks: list[Ask] = [random.choice(offers).ask]
        if random.random() < 0.14:
            asks.append(random.choice(offers).ask)
        return _calling(asks, random)

    def _without_call(self, offers: list[Offer], random: Random) -> Turn:
        known = {offer.family for offer in offers}
        kind = random.random()
        if kind < 0.2 and not known & KNOWING:
            return self._outside(random)
        if kind < 0.45:
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
