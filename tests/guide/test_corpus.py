"""The training text: the same for the same seed, and free of what is held out."""

from __future__ import annotations

from itertools import islice

from guide.corpus import Corpus
from guide.decontamination import RUN, Heldout, runs, wordings
from guide.grammar import normal
from guide.topics import Book

SEED = 5


def test_the_same_seed_draws_the_same_conversations(book: Book) -> None:
    corpus = Corpus(book, Heldout(()))
    first, again, other = (list(islice(corpus.conversations(seed), 50)) for seed in (SEED, SEED, SEED + 1))
    assert first == again
    assert first != other


def test_training_text_repeats_no_held_out_wording_and_no_five_words_of_one(book: Book) -> None:
    texts = wordings()
    whole, parts = {normal(text) for text in texts}, {run for text in texts for run in runs(text)}
    drawn = islice(Corpus(book, Heldout(texts)).conversations(SEED), 1500)
    for turn in (turn for conversation in drawn for turn in conversation.turns):
        assert normal(turn.question) not in whole
        assert parts.isdisjoint(runs(turn.question))


def test_a_wording_is_rejected_for_five_words_in_a_row_but_not_for_four() -> None:
    heldout = Heldout(["Could you please tell me how late it is?"])
    assert RUN == 5
    assert not heldout.admits("so please tell me how late the bus was")
    assert heldout.admits("please tell me how")
    assert not heldout.admits("could you PLEASE tell me how late it is")


def test_the_notation_of_a_schema_counts_as_no_wording() -> None:
    schema = '{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}'
    assert Heldout([f"fill {schema} with x"]).admits(f"JSON for {schema} where a is y")


def test_most_conversations_have_one_turn_and_some_have_several(book: Book) -> None:
    counts = [len(c.turns) for c in islice(Corpus(book, Heldout(())).conversations(SEED), 500)]
    assert counts.count(1) > 250
    assert max(counts) >= 4
