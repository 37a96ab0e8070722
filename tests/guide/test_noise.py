"""Noise keeps what must be copied."""

from __future__ import annotations

from random import Random

from guide.noise import spoil


def test_a_slot_value_survives_all_noise() -> None:
    for seed in range(300):
        assert "qwen3-0.6b" in spoil(
            "please unload qwen3-0.6b from the memory", ("qwen3-0.6b",), Random(seed)
        )


def test_noise_makes_many_wordings_of_one() -> None:
    assert len({spoil("how do i stop the running daemon", (), Random(seed)) for seed in range(200)}) > 60


def test_nothing_becomes_empty() -> None:
    assert all(spoil("the", (), Random(seed)) for seed in range(100))
