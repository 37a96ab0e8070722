from __future__ import annotations

import pytest

from llmd.server.errors import BusyError, ForbiddenError, RateLimitError, UnauthorizedError, UnavailableError


@pytest.mark.parametrize("kind", [BusyError, RateLimitError])
def test_a_refused_sender_learns_which_limit_it_was_and_when_to_come_back(kind: type[BusyError]) -> None:
    error = kind("the queue is full", code="queue_full", hint="send it again later", retry_after_s=3)
    assert (error.message, error.code, error.hint, error.retry_after_s) == (
        "the queue is full",
        "queue_full",
        "send it again later",
        3,
    )


def test_waiting_may_not_help() -> None:
    assert UnavailableError("it was unloaded", code="model_unloaded").retry_after_s is None


@pytest.mark.parametrize("kind", [ForbiddenError, UnauthorizedError])
def test_commands_end_with_the_status_of_a_missing_right(
    kind: type[ForbiddenError | UnauthorizedError],
) -> None:
    assert kind("no", code="no_key").exit_code == 4
