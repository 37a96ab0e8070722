"""Tools with made-up names and keys: what they do and take stands in their definitions alone, so that reading
these, and copying from them, is learned and not the tools.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from guide import records
from guide.record_words import FIELDS, WORDS
from guide.slots import invented
from guide.tool_text import Call
from guide.tools import Offer, dressed, function, member, value

# Verbs that mean the same: the name has one, the description and the request may have others.
SUBCOMMANDS = tuple(map(str.split, (
    "get fetch show read check", "find search look_up locate", "create add make write register", "delete remove erase drop discard", "start begin launch run activate", "stop end halt cancel pause", "open unlock",
    "close lock shut", "send deliver ship bring", "move carry shift transfer", "set change adjust put", "book reserve order", "print display show", "count measure weigh", "save store keep record", "load read import",
    "paint colour", "clean wash", "repair fix mend", "feed give", "cut trim", "fill refill", "rent hire borrow", "rename relabel", "call ring phone", "share post publish", "turn rotate spin", "assign hand give", "copy duplicate clone", "invite ask",
)))  # fmt: skip
ASKING = tuple("get fetch read find show lookup".split())
TEXTS = ("word", "word", "name", "name", "place", "place", "code", "ticker", "phrase", "path")
UNITS = "minutes seconds hours days weeks litres grams metres pages copies people percent degrees cups steps euros points rounds miles pieces".split()  # fmt: skip
COUNTS = "amount total count level number value price limit size quantity".split()
# How a request says an argument: `{v}` is its value, `{k}` its key.
KEYED = ("with {k} {v}", "for {k} {v}", "for the {k} {v}", "{k} {v}", "in the {k} {v}", "to {k} {v}", "where the {k} is {v}", "({k}: {v})", "at the {v} {k}", "{k}: {v}", "the {k} is {v}")  # fmt: skip
BARE = ("for {v}", "of {v}", "in {v}", "to {v}", "from {v}", "about {v}", "{v}", 'called "{v}"', "at {v}", "on {v}")  # fmt: skip
MEASURED = ("for {v} {k}", "with {v} {k}", "{v} {k}", "by {v} {k}", "of {v} {k}", "in {v} {k}", "{v} {k}")
COUNTED = ("for {v}", "to {v}", "at {v}", "by {v}", "of {v}", "with {v}", "{v}")
CHOSEN = ("with {k} {v}", "{k} {v}", "{v}", "as {v}", "{v} {k}", "in {v}", "it is {v}", "{v}")
ON_OBJECT = ("{verb} {v}", "{verb} the {v}", "{verb} the {n} {v}", "{verb} {n} {v}", "{verb} the {v} {n}", "the {n} {v}: {verb} it", "{verb} the {n} called {v}", "{verb} {v} the {n}", "{v} is the {n} to {verb}", "{verb} my {n} {v}", 'the {n} "{v}", {verb} it', "i want {n} {v}, {verb} it")  # fmt: skip
ON_NOUN = ("{verb} the {n}", "{verb} a {n}", "{verb} {n}", "{verb} my {n}", "{verb} one {n}", "{n}, {verb} it", "a {n} to {verb}", "use {tool} to {verb} the {n}")  # fmt: skip
QUESTIONS = ("what is the {n} {t}", "what {n} {t} is there", "the {n} {t}", "{n} {t}", "how is the {n} {t}", "when is the {n} {t}", "is there a {n} {t}", "tell me the {n} {t}", "{verb} the {n} {t}", "{verb} me the {n} {t}", "i need the {n} {t}")  # fmt: skip
POINTED = ("which {n} does {v} have", "{v}: which {n}", "{v} {n}", "does {v} have a {n}", "how about the {n} {t}", "what about the {n} {t}")  # fmt: skip
TARGETS = ("of {v}", "for {v}", "in {v}", "at {v}", "of {k} {v}", "of the {k} {v}", "for the {k} {v}", "of the {v} {k}", "in the {k} {v}", "of {v}")  # fmt: skip
BESIDE = ("the {} is {}", "i have a {} and a {}", "we like the {} and the {}", "i am a {} with a {}", "{} or {}, who knows", "the {} needs a {}", "i saw the {} in the {}", "there is a {} on the {}")  # fmt: skip
ARTICLES = ("a", "the", "one")
LEADS = ("get the ", "returns the ", "the ", "", "look up the ", "tells the ")


@dataclass(frozen=True)
class _Argument:
    """``kind`` is a kind of values or an enumeration; ``forms`` are how a request may say it."""

    key: str
    kind: str
    forms: tuple[str, ...] = ()
    optional: bool = False

    def said(self, value: Any, random: Random) -> str:
        """The value as a request gives it."""
        return random.choice(self.forms).format(k=_words(self.key), v=value)


def made_up(random: Random, like: str | None = None) -> Offer:
    """A tool that nobody knows; ``like``, the name of another, lends it its noun or its verb."""
    verbs = random.choice(SUBCOMMANDS)
    noun = _noun(random)
    if like and "_" in like:
        verb, _, rest = like.partition("_")
        same = next((verbs for verbs in SUBCOMMANDS if verb in verbs), None)
        verbs, noun = (same, noun) if same and random.random() < 0.5 else (verbs, rest)
    return random.choices((_acting, _asking, _filling), (50, 28, 22))[0](verbs, noun, random)


def _acting(verbs: list[str], noun: str, random: Random) -> Offer:
    """``pause_robot(robot: string, seconds: integer)``: what is done to a thing, and how."""
    on_object = random.random() < 0.6
    arguments = [_Argument(random.choice((noun, noun, "name", f"{noun}_name", "id")), _text_kind(random))] if on_object else []  # fmt: skip
    arguments += _details(arguments, random)

    def ask(name: str, random: Random) -> tuple[str, dict[str, Any]]:
        given = {a.key: value(a.kind, random) for a in arguments if not a.optional or random.random() < 0.5}
        head = random.choice(ON_OBJECT if on_object else ON_NOUN)
        target = given[arguments[0].key] if on_object else ""
        text = head.format(verb=_words(random.choice(verbs)), n=_words(noun), v=target, tool=name)
        details = [a.said(given[a.key], random) for a in arguments if a.forms and a.key in given]
        random.shuffle(details)
        if details and random.random() < 0.15:
            text = f"{details.pop()}{random.choice((': ', ', ', ' - '))}{text}"
        return random.choice((" ", " ", ", ")).join((text, *details)), given

    verb, ending, article = random.choice(verbs), random.choice(("", "", "s")), random.choice(ARTICLES)
    described = f"{_words(verb)}{ending} {article} {_words(noun)}"
    return _offer(_named(random.choice(verbs), noun, random), described, arguments, ask, random)


def _asking(_: list[str], noun: str, random: Random) -> Offer:
    """``get_tide(harbour: string)``: what is known of something."""
    verb, key = random.choice(ASKING), _noun(random)
    arguments = [_Argument(key, _text_kind(random))] if random.random() < 0.9 else []

    def ask(_: str, random: Random) -> tuple[str, dict[str, Any]]:
        given = {a.key: value(a.kind, random) for a in arguments}
        words = {"n": _words(noun), "verb": random.choice(ASKING[:5])}
        if not arguments:
            return random.choice(QUESTIONS).format(t="", **words), given
        words |= {"k": _words(key), "v": str(given[key])}
        return random.choice((*QUESTIONS, *POINTED)).format(
            t=random.choice(TARGETS).format(**words), **words
        ), given

    of = (
        f" {random.choice(('of', 'for', 'in', 'at'))} {random.choice(ARTICLES)} {_words(key)}"
        if arguments
        else ""
    )
    described = f"{random.choice(LEADS)}{_words(noun)}{of}"
    name = random.choice((_named(verb, noun, random), _named(verb, noun, random), noun, f"{noun}_{key}"))
    return _offer(name, described, arguments, ask, random)


def _filling(verbs: list[str], noun: str, random: Random) -> Offer:
    """A tool that takes a record, whose fields the request names as those of JSON objects are."""
    shape = records.draw(random)[:3]
    members = {field.key: {"type": field.type} for field in shape}
    name, verb = _named(random.choice(verbs), noun, random), _words(random.choice(verbs))

    def ask(random: Random) -> tuple[str, Call]:
        fields = [records.Field(f.key, f.type, records.VALUES[_kind(f)](random)) for f in shape]
        head = random.choice(ON_NOUN).format(verb=verb, n=_words(noun), tool=name)
        joint = random.choice((" with ", " with ", ": ", ", ", " where ", " for "))
        text = head + joint + records.given(fields, random)
        return dressed(text, random), (name, {field.key: field.value for field in fields})

    described = f"{verb} a {_words(noun)}".capitalize()
    return Offer("", function(name, described, members, [*members], random), ask)


def _kind(field: records.Field) -> str:
    named = next((kind for kind, keys in FIELDS.items() if field.key in keys), field.type)
    return "word" if named == "string" else named


def _offer(
    name: str,
    described: str,
    arguments: list[_Argument],
    ask: Callable[[str, Random], tuple[str, dict[str, Any]]],
    random: Random,
) -> Offer:
    members = {argument.key: member(argument.kind) for argument in arguments}
    required = [argument.key for argument in arguments if not argument.optional]

    def asked(random: Random) -> tuple[str, Call]:
        text, given = ask(name, random)
        text = dressed(" ".join(text.split()), random, kept=tuple(map(str, given.values())))
        if random.random() < 0.12:
            beside = random.choice(BESIDE).format(random.choice(WORDS), random.choice(WORDS)).capitalize()
            text = random.choice((f"{beside}. {text}", f"{text.rstrip('.?!')}. {beside}."))
        return text, (name, given)

    return Offer("", function(name, described.capitalize(), members, required, random), asked)


def _details(taken: list[_Argument], random: Random) -> list[_Argument]:
    """Up to two more arguments, each told apart from the others by its type or its key."""
    count = random.choices((0, 1, 2), (30, 50, 20) if taken else (10, 65, 25))[0]
    makers = random.sample((_text, _measure, _choice), count)
    drawn = {argument.key: argument for argument in (make(taken, random) for make in makers)}
    return [argument for key, argument in drawn.items() if key not in {argument.key for argument in taken}]


def _text(taken: list[_Argument], random: Random) -> _Argument:
    """A text; the only one of its request need not be named."""
    forms = KEYED if taken else (*KEYED, *BARE, *BARE)
    return _Argument(_noun(random), _text_kind(random), forms, random.random() < 0.4)


def _measure(_: list[_Argument], random: Random) -> _Argument:
    kind = random.choice(("small", "integer", "integer", "number"))
    if random.random() < 0.6:
        unit = random.choice((*UNITS, f"{invented(random)}s"))
        return _Argument(unit, kind, MEASURED, random.random() < 0.4)
    count = random.choice((*COUNTS, _noun(random)))
    return _Argument(count, kind, (*KEYED, *COUNTED), random.random() < 0.4)


def _choice(_: list[_Argument], random: Random) -> _Argument:
    options = random.sample(WORDS, random.randint(2, 4))
    if random.random() < 0.3:
        options[0] = invented(random)
    return _Argument(_noun(random), "|".join(options), CHOSEN, random.random() < 0.4)


def _text_kind(random: Random) -> str:
    return random.choice((*TEXTS, "integer"))


def _noun(random: Random) -> str:
    kind = random.random()
    if kind < 0.3:
        return invented(random)
    if kind < 0.42:
        return f"{random.choice(WORDS)}_{random.choice(WORDS)}"
    word, field = random.choice(WORDS), random.choice(FIELDS[random.choice(("word", "place", "name"))])
    return random.choice((word, field))


def _named(verb: str, noun: str, random: Random) -> str:
    return f"{verb}_{noun}" if random.random() < 0.85 else verb + noun.title().replace("_", "")


def _words(name: str) -> str:
    return name.replace("_", " ")
