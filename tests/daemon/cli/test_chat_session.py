"""A chat remembers its turns, and offers to drop the oldest when the context window is full."""

from __future__ import annotations

from llmd.api.errors import EngineCrashedError
from llmd.cli.conversation import Turn
from llmd.cli.streaming import Printed
from tests.daemon.cli.counting_model import CountingModel, Talk

LONG = "word " * 8  # with its answer "answer N", a turn has ten words


def filled(model: CountingModel, system: str | None = None) -> Talk:
    """Return a chat with three long turns."""
    talk = Talk(model, system)
    for _ in range(3):
        talk.session.answer(LONG)
    return talk


def test_each_question_comes_with_what_was_said_before() -> None:
    model = CountingModel()
    talk = Talk(model, "be brief")
    talk.session.answer("one")
    talk.session.answer("two")
    assert model.asked[1] == ["be brief", "one", "answer 1", "two"]


def test_a_question_that_cannot_be_answered_is_forgotten() -> None:
    model = CountingModel()
    talk = Talk(model)
    model.error = EngineCrashedError("it died")
    talk.session.answer("one")
    assert talk.said == ["it died"]
    model.error = None
    talk.session.answer("two")
    assert model.asked == [["two"]]


def test_of_an_interrupted_answer_the_text_is_kept_and_without_text_nothing() -> None:
    model = CountingModel()
    talk = Talk(model)
    model.printed = Printed("half", "interrupted", None, None, 0.1, 0.2)
    talk.session.answer("one")
    model.printed = Printed("", "interrupted", None, None, None, 0.2)
    talk.session.answer("two")
    assert talk.session.conversation.turns == [Turn("one", "half")]


def test_a_full_conversation_goes_on_without_its_oldest_turns_where_the_user_agrees() -> None:
    model = CountingModel(window=40)  # ten of them are reserved for the answer
    talk = filled(model, "be brief")
    talk.session.answer(LONG)
    assert talk.said == [
        "the conversation with this message has 40 tokens, and the context window holds 40",
        "dropped the oldest turn",
    ]
    assert talk.questions == ["drop the oldest turn of 3 and send it?"]
    assert model.asked[-1] == ["be brief", LONG, "answer 2", LONG, "answer 3", LONG]
    assert len(talk.session.conversation.turns) == 3


def test_as_many_turns_go_as_leave_room_for_the_answer() -> None:
    model = CountingModel(window=36)
    talk = filled(model)
    talk.session.conversation.settings["max_tokens"] = 18
    talk.session.answer(LONG)
    assert talk.questions == ["drop the 2 oldest turns of 3 and send it?"]
    assert talk.said[-1] == "dropped the 2 oldest turns"
    assert model.asked[-1] == [LONG, "answer 3", LONG]


def test_all_turns_go_where_fewer_leave_no_room() -> None:
    model = CountingModel(window=36)
    talk = filled(model)
    talk.session.answer("word " * 30)
    assert talk.said[-1] == "dropped the 3 oldest turns"
    assert model.asked[-1] == ["word " * 30]


def test_where_the_user_refuses_nothing_is_dropped_or_sent() -> None:
    model = CountingModel(window=36)
    talk = filled(model)
    talk.reply = False
    talk.session.answer(LONG)
    assert talk.said[-1] == "the message was not sent; /reset clears the whole conversation"
    assert len(model.asked) == len(talk.session.conversation.turns) == 3


def test_a_message_that_is_too_long_alone_is_refused_without_an_offer() -> None:
    model = CountingModel(window=36)
    talk = Talk(model)
    talk.session.answer("word " * 50)
    assert talk.said == ["this message alone has 50 tokens, and the context window holds 36: shorten it"]
    talk = filled(model, "be brief")
    talk.session.answer("word " * 34)
    assert talk.said == [
        "this message with the system prompt alone has 36 tokens, and the context window holds 36: shorten it"
    ]
    assert talk.questions == []
