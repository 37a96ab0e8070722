"""A profile is pinned, and overrides give warnings."""

from __future__ import annotations

import argparse

import pytest

from bench.cpu_profiles import FULL, QUICK, Profile, add_options, chosen
from bench.quiet import MOST_THROWN_OUT


def of(*words: str) -> tuple[Profile, list[str]]:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return chosen(parser.parse_args(words))


def test_a_profile_as_it_is_has_no_warnings() -> None:
    assert of() == (QUICK, [])
    assert of("--profile", "full") == (FULL, [])


def test_every_override_is_warned_of() -> None:
    profile, warnings = of("--rounds", "2", "--depths", "1024,2048", "--pairs", "q8:Q8_0", "--isas", "avx2")
    assert (profile.rounds, profile.depths, profile.isas) == (2, (1024, 2048), ("avx2",))
    assert profile.pairs == (("q8", "Q8_0"),)
    assert sorted(warnings) == [
        "--depths 1024,2048: profile `quick` has 4096",
        "--isas avx2: profile `quick` has none",
        "--pairs q8:Q8_0: profile `quick` has q4:Q4_0",
        "--rounds 2: profile `quick` has 5",
    ]


def test_a_list_may_be_emptied() -> None:
    assert of("--depths", "")[0].depths == ()


@pytest.mark.parametrize(
    "words", [("--pairs", "q8"), ("--rounds", "many"), ("--batches", "1,x"), ("--kv", "int3")]
)
def test_what_cannot_be_read_is_refused(words: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match=words[1].rpartition(",")[2]):
        of(*words)


def test_a_sequence_has_room_for_every_round_that_there_may_be() -> None:
    profile, _ = of("--rounds", "2", "--steps", "4")
    assert profile.grown == 1 + 4 * (1 + 2 + MOST_THROWN_OUT)


def test_beside_other_work_there_are_few_rounds_of_one_sequence() -> None:
    assert (FULL.beside_work().batches, FULL.beside_work().depths, FULL.beside_work().rounds) == ((1,), (), 3)
    assert of("--rounds", "2")[0].beside_work().rounds == 2


def test_one_instruction_set_is_measured_without_depth() -> None:
    short = FULL.without_depth()
    assert (short.depths, short.batches) == ((), (1, 16))
