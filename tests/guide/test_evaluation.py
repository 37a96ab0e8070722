"""The evaluation: enough wordings, none of which a training template could make, scored strictly."""

from __future__ import annotations

import hashlib
import json

import pytest

from guide.evaluate import RESULT, score
from guide.questions import APART, REFUSED, RETIRED, STRANGERS, UNFAMILIAR, Question, read
from guide.scoring import is_right, refuses
from guide.sums import held_out
from guide.templates import Templates
from guide.topics import OUTSIDE, REFUSALS, Book
from llmd.builtin.guide import guide_directory


def test_there_are_three_hundred_wordings_and_fifty_out_of_scope(questions: list[Question]) -> None:
    assert sum(question.kind == OUTSIDE for question in questions) == 50
    assert sum(question.kind not in APART for question in questions) >= 300
    assert all(sum(question.kind == kind for question in questions) >= 30 for kind in REFUSED)
    assert len({question.ask for question in questions}) == len(questions)


def test_every_topic_is_asked_for(book: Book, questions: list[Question]) -> None:
    assert (
        book.topics.keys() - {question.topic for question in questions if question.kind != RETIRED} == set()
    )


@pytest.mark.timeout(120)
def test_no_training_template_could_make_a_wording(templates: Templates, questions: list[Question]) -> None:
    asked = [question.ask for question in questions if question.kind not in (RETIRED, *STRANGERS)]
    assert {text: found for text in asked if (found := templates.match(text))} == {}
    assert templates.match("Which command lets me stop the daemon?") == "stop-daemon"


def test_sums_have_operands_that_training_never_shows(questions: list[Question]) -> None:
    sums = [question.sum for question in questions if question.sum]
    assert len(sums) >= 40
    assert all(held_out(*operands) for operands in sums)


@pytest.mark.timeout(120)
def test_unfamiliar_questions_are_of_kinds_that_no_template_has(book: Book, templates: Templates) -> None:
    unfamiliar = read(UNFAMILIAR)
    assert len(unfamiliar) >= 50
    made = {question.ask: templates.match(question.ask) for question in unfamiliar}
    assert {
        ask: topic for ask, topic in made.items() if topic in book.topics and book.topics[topic].refuses
    } == {}


def test_a_refusal_begins_as_one_and_holds_no_other_answer(book: Book) -> None:
    question = Question("lacks", "draw a cat", topic="lacks-images", refuse=True)
    for answer in (book.topics["lacks-images"].answer, "I don't know that flag.", "llmd cannot do that."):
        assert is_right(question, answer, book)
    for answer in (
        "Type `llmd stop --daemon`.",
        "llmd cannot do that, but `llmd stop --daemon` ends the daemon.",
        "Sorry, I don't know.",
        "",
    ):
        assert not is_right(question, answer, book)


def test_only_refusals_begin_as_refusals(book: Book) -> None:
    for topic in book.topics.values():
        assert topic.refuses == refuses(topic.answer, book), topic.name
        assert topic.refuses == topic.name.startswith(("lacks-", "unknown-", OUTSIDE)), topic.name
        assert topic.refuses or not topic.answer.lower().startswith(tuple(text.lower() for text in REFUSALS))


def test_a_question_may_have_several_right_answers(book: Book) -> None:
    question = Question("strangers", "is it quick?", topic="bench", accept=("slow",))
    assert all(is_right(question, book.topics[name].answer, book) for name in ("bench", "slow"))
    assert not is_right(question, book.topics["size"].answer, book)


def test_refused_questions_that_have_an_answer_are_counted(book: Book) -> None:
    questions = [Question("llmd", text, topic="stop-daemon") for text in ("end it", "kill it")]
    scores, _ = score(questions, [book.topics["lacks-other"].answer, "Type `llmd stop --daemon`."], book)
    assert (scores["timid"].right, scores["timid"].asked) == (1, 2)


def test_the_taught_answers_are_all_right(book: Book, questions: list[Question]) -> None:
    scores, wrong = score(questions, [question.answer(book) for question in questions], book)
    assert wrong == []
    assert scores["total"].right == scores["total"].asked >= 300


def test_an_answer_that_also_holds_another_topics_string_is_wrong(book: Book) -> None:
    question = Question("llmd", "how do I end it", topic="stop-daemon")
    assert is_right(question, "Type `llmd stop --daemon`.", book)
    assert not is_right(question, "Type `llmd stop --daemon` or `llmd doctor`.", book)
    assert not is_right(question, "Type `llmd stop`.", book)


def test_a_slot_must_hold_the_value_that_was_asked_for(book: Book) -> None:
    question = Question("llmd", "port 7001 please", topic="change-address", slots={"port": "7001"})
    assert is_right(question, "`llmd serve MODEL --addr 127.0.0.1:7001`", book)
    assert not is_right(question, "`llmd serve MODEL --addr 127.0.0.1:9000`", book)


def test_an_object_must_fit_its_schema_and_hold_the_values(book: Book) -> None:
    schema = {"properties": {"age": {"type": "integer"}, "paid": {"type": "boolean"}}}
    question = Question("json", "", schema=schema, object={"age": 1, "paid": True})
    assert is_right(question, '{"paid": true, "age": 1}', book)
    for wrong in ('{"age": 1}', '{"age": true, "paid": true}', '{"age": 2, "paid": true}', "{age: 1}", "1"):
        assert not is_right(question, wrong, book)


def test_a_sum_must_end_with_its_result(book: Book) -> None:
    question = Question("sums", "", sum=(8, "*", 8))
    assert is_right(question, "8 * 8: 8 16 24 32 40 48 56 64. 8 * 8 = 64.", book)
    assert not is_right(question, "8 * 8 = 164.", book)
    assert not is_right(question, "64 is not 8 * 8 = 63.", book)


def test_the_committed_scores_belong_to_the_committed_weights() -> None:
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    weights = (guide_directory() / "model.safetensors").read_bytes()
    assert result["weights_sha256"] == hashlib.sha256(weights).hexdigest()
    assert result["scores"]["total"]["asked"] >= 300


def test_the_committed_scores_reach_their_goals() -> None:
    scores = json.loads(RESULT.read_text(encoding="utf-8"))["scores"]
    goals = {"total": 0.90, "strangers": 0.80, "strangers-lacks": 0.85}
    assert {name: scores[name]["right"] >= goal * scores[name]["asked"] for name, goal in goals.items()} == (
        dict.fromkeys(goals, True)
    )
