from __future__ import annotations

from llmd.server.generation.timing import Timing


def test_durations_are_between_submission_first_and_latest_token() -> None:
    timing = Timing(submitted=1_000, first_token=4_000, last_token=9_000)
    assert (timing.prefill_ns, timing.decode_ns) == (3_000, 5_000)


def test_first_token_stays_the_first() -> None:
    timing = Timing()
    timing.submit()
    timing.token()
    first = timing.first_token
    timing.token()
    assert timing.first_token == first <= timing.last_token
    assert timing.submitted <= first


def test_request_without_tokens_took_no_time() -> None:
    timing = Timing()
    timing.submit()
    assert (timing.prefill_ns, timing.decode_ns) == (0, 0)
