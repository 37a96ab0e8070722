from __future__ import annotations

from typing import Any

from llmd_tui.screens.models.pull_progress import PullProgress, lines

MIB = 1 << 20


def step(file: str, completed: int, total: int = 100) -> dict[str, Any]:
    return {
        "status": f"pulling {file}",
        "digest": f"sha256:{file}",
        "file": file,
        "completed": completed * MIB,
        "total": total * MIB,
    }


def test_a_pull_that_has_just_begun_says_what_it_does() -> None:
    pull = PullProgress("org/x")
    assert lines(pull) == ["Pulling org/x: asking the hub"]
    pull.add({"status": "pulling manifest"}, 0.0)
    assert lines(pull) == ["Pulling org/x: pulling manifest"]


def test_files_rate_and_time_left_are_told() -> None:
    pull = PullProgress("org/x")
    pull.add(step("small", 1, 1), 0.0)
    pull.add(step("a", 0), 0.0)
    pull.add(step("b", 10), 2.0)
    pull.add(step("a", 40), 4.0)
    assert pull.bytes_per_s == 10 * MIB
    assert lines(pull) == [
        "Pulling org/x: 1 of 3 files, 51.0 MiB of 201.0 MiB, 10.0 MiB/s, 15.0 s left",
        "  ██████░░░░░░░░░  40%  40.0 MiB of 100.0 MiB   a",
        "  █░░░░░░░░░░░░░░  10%  10.0 MiB of 100.0 MiB   b",
    ]


def test_what_an_earlier_pull_fetched_does_not_count_as_fast() -> None:
    pull = PullProgress("org/x")
    pull.add(step("a", 0), 0.0)
    pull.add(step("a", 1), 1.0)
    pull.add(step("b", 99), 1.0)  # was there before
    pull.add(step("b", 100), 2.0)
    assert pull.bytes_per_s == MIB


def test_the_rate_is_that_of_the_last_seconds() -> None:
    pull = PullProgress("org/x")
    for second in range(30):
        pull.add(step("a", min(second, 20)), float(second))
    assert pull.bytes_per_s is not None
    assert pull.bytes_per_s < MIB / 5
    assert pull.left_s == (80 * MIB) / pull.bytes_per_s


def test_a_pull_that_stands_still_has_no_time_left() -> None:
    pull = PullProgress("org/x")
    pull.add(step("a", 5), 0.0)
    pull.add(step("a", 5), 5.0)
    assert (pull.bytes_per_s, pull.left_s) == (0, None)


def test_only_a_few_files_are_shown() -> None:
    pull = PullProgress("org/x")
    for number in range(9):
        pull.add(step(f"f{number}", 10), 0.0)
    assert len(lines(pull)) == 4
    assert "#" in lines(pull, ascii_only=True)[1]
