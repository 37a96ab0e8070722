"""Conversations to learn from, drawn without end from one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from guide import records, sums
from guide.decontamination import Heldout
from guide.noise import spoil, wrap
from guide.slots import invented, model, person
from guide.synonyms import reword
from guide.tool_talk import ToolTalk
from guide.topics import OUTSIDE, Book, Topic
from guide.turns import Conversation, Turn

SYSTEM_PROMPTS = (
    "You are a helpful assistant.", "You are the guide of llmd.", "Answer briefly.", "Be concise.", "You are a friendly assistant.", "Answer in one sentence.", "You help users of llmd.",
    "You are an expert for llmd.", "Be polite.", "You are a helpful, honest assistant.", "Help the user with the command line.", "You answer questions.", "Keep answers short.",
)  # fmt: skip
TOOLS_SHARE = 0.25  # of conversations
# Of topics, of what llmd lacks or does not have, small talk, out-of-scope questions, sums, JSON, echoes.
SHARES = (50, 18, 5, 7, 8, 8, 4)
TWICE = 0.06  # of the questions about a topic: a situation and a question, or a question in two ways
SMALL_TALK = ("hello", "feeling", "thanks", "bye", "joke", "rude")
ECHOES = (
    "repeat {}", "say {}", "repeat after me: {}", "echo {}", "please repeat: {}", "Say: {}", "Repeat this: {}", "write {} again",
    "spell back {}", "print the words {}", "can you repeat {}", "Please say {}", "copy {}", "say exactly {}",
)  # fmt: skip
QUOTES = (
    "quote {}",
    "put quotes around {}",
    "quote each word: {}",
    "in quotes: {}",
    "{} with quotes please",
    "write {} in quotes",
)
INTRODUCTIONS = ("my name is {}", "i am {}", "call me {}", "i'm {}", "this is {}", "you can call me {}", "{} is my name", "people call me {}", "hi, i'm {}", "hello, my name is {}", "they call me {}", "the name is {}", "please call me {}")  # fmt: skip
RECALLS = ("what is my name", "what's my name", "do you know my name", "who am i", "do you remember my name", "say my name", "tell me my name", "how am i called", "what did i say my name was", "remember who i am", "can you remember my name", "what am i called")  # fmt: skip


class Corpus:
    """Draws conversations; none repeats a held-out wording. ``tools_share`` of them offer tools."""

    def __init__(self, book: Book, heldout: Heldout, tools_share: float = TOOLS_SHARE) -> None:
        self._book, self._heldout, self._tools_share = book, heldout, tools_share
        topics = [t for name, t in book.topics.items() if name not in SMALL_TALK and name != OUTSIDE]
        self._facts = [topic for topic in topics if not topic.refuses]
        self._refusals = [topic for topic in topics if topic.refuses]
        self._tools = ToolTalk(self._unaided, self._outside, book.topics[OUTSIDE].answer)

    def conversations(self, seed: int) -> Iterator[Conversation]:
        """Conversations without end, the same for the same seed."""
        random = Random(seed)
        while True:
            yield self._conversation(random)

    def _conversation(self, random: Random) -> Conversation:
        system = random.choice(SYSTEM_PROMPTS) if random.random() < 0.1 else ""
        if random.random() < self._tools_share:
            tools, turns = self._tools.draw(random, self._heldout.admits)
            return Conversation("\n\n".join(filter(None, (system, tools))), tuple(turns))
        count = random.choices((1, 2, 3, 4, 6), (74, 14, 7, 3, 2))[0]
        turns = [self._turn(random) for _ in range(count)]
        if random.random() < 0.04:
            turns = _acquainted(turns, random)
        return Conversation(system, tuple(turns))

    def _turn(self, random: Random) -> Turn:
        draws = (self._topic, self._refusal, self._talk, self._outside, _sum, _record, _echo)
        draw = random.choices(draws, SHARES)[0]
        while True:
            turn = draw(random)
            if self._heldout.admits(turn.question):
                return turn

    def _topic(self, random: Random) -> Turn:
        return self._about(_weighted(self._facts, random), random)

    def _refusal(self, random: Random) -> Turn:
        return self._about(_weighted(self._refusals, random), random)

    def _unaided(self, random: Random) -> Turn:
        """A turn that no tool is for."""
        return random.choices((self._topic, self._talk, _sum, _record), (70, 10, 12, 8))[0](random)

    def _again(self, topic: Topic, random: Random) -> str:
        """A second sentence on the same topic, or nothing if it names a value."""
        text, values = self._book.ask(topic, random)
        return "" if values else text

    def _talk(self, random: Random) -> Turn:
        return self._about(random.choice(SMALL_TALK), random)

    def _outside(self, random: Random) -> Turn:
        return self._about(OUTSIDE, random)

    def _about(self, name: str, random: Random) -> Turn:
        topic = self._book.topics[name]
        text, values = self._book.ask(topic, random)
        if not values and random.random() < TWICE:
            text = f"{text}{random.choice(('.', ',', '?', ';', ':', ' -', ''))} {self._again(topic, random)}"
        reworded = reword(text, values.values(), random)
        question = spoil(wrap(reworded, self._book, random), values.values(), random)
        return Turn(question, topic.render(topic.answer, values), recited=True)


def _weighted(topics: list[Topic], random: Random) -> str:
    return random.choices(topics, [topic.weight for topic in topics])[0].name


def _sum(random: Random) -> Turn:
    operands = sums.pair(random)
    text = sums.question(*operands, random)
    if random.random() < 0.3:
        text = text[0].upper() + text[1:]
    return Turn(text + random.choice(("?", "", "", ".", " ?")), sums.solution(*operands))


def _record(random: Random) -> Turn:
    fields = records.draw(random)
    text = records.request(fields, random)
    if random.random() < 0.5:
        text = text[0].upper() + text[1:]
    return Turn(text + random.choice(("", "", ".")), records.answer(fields))


def _echo(random: Random) -> Turn:
    """Repeating unknown words and numbers: what answers with names and values in them are made of."""
    pieces = [random.choice((invented, model, person, _digits))(random) for _ in range(random.randint(1, 5))]
    if random.random() < 0.3:
        return Turn(
            random.choice(QUOTES).format(" ".join(pieces)), " ".join(f'"{piece}"' for piece in pieces)
        )
    text = " ".join(pieces)
    return Turn(random.choice(ECHOES).format(text), text)


def _digits(random: Random) -> str:
    return str(random.randint(0, 10 ** random.randint(1, 5)))


def _acquainted(turns: list[Turn], random: Random) -> list[Turn]:
    """The user's name is given in an earlier turn and asked for in the last, or asked for without."""
    name = person(random)
    dress: Callable[[str], str] = lambda text: spoil(text, (name,), random)  # noqa: E731
    hello = Turn(
        dress(random.choice(INTRODUCTIONS).format(name)),
        f"Nice to meet you, {name}. Ask me anything about llmd.",
    )
    recall = dress(random.choice(RECALLS))
    if random.random() < 0.2:
        return [*turns[1:], Turn(recall, "You have not told me your name.")]
    return [hello, *turns[1:], Turn(recall, f"Your name is {name}.")]
