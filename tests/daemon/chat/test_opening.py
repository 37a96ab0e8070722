from __future__ import annotations

from llmd.chat.opening import with_opening

SYSTEM = {"role": "system", "content": "Be Mario."}
SHOT = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Mario."}]
HELLO = {"role": "user", "content": "Hello"}


def test_opening_stands_before_the_conversation() -> None:
    assert with_opening([SYSTEM, *SHOT], [HELLO]) == [SYSTEM, *SHOT, HELLO]
    assert with_opening((), [HELLO]) == [HELLO]
    assert with_opening([SYSTEM], []) == [SYSTEM]


def test_system_message_of_the_conversation_takes_the_place_of_the_openings() -> None:
    own = {"role": "developer", "content": "Be Luigi."}
    assert with_opening([SYSTEM, *SHOT], [own, HELLO]) == [own, *SHOT, HELLO]
