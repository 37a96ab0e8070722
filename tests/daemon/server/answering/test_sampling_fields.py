from __future__ import annotations

import pytest

from llmd.chat.sampling_choice import SamplingChoice
from llmd.server.answering.sampling_fields import read_sampling
from llmd.server.http.request_fields import RequestFields


def test_sampling_takes_numbers_however_they_are_written() -> None:
    body = {"temperature": "0.5", "top_k": 5.0, "top_p": "1", "min_p": 0, "seed": "7"}
    fields = RequestFields(body)
    assert read_sampling(fields, 2) == SamplingChoice(0.5, 5, 1.0, 0.0, 7, 2)
    assert fields.ignored == ()


def test_top_k_of_minus_one_is_off() -> None:
    assert read_sampling(RequestFields({"top_k": -1}), None).top_k == 0


@pytest.mark.parametrize("seed", [-1, 1 << 63, 1 << 64, (1 << 64) + 5])
def test_seeds_beyond_64_bits_are_taken(seed: int) -> None:
    assert read_sampling(RequestFields({"seed": seed}), None).seed == seed


def test_llama_cpps_name_of_the_repetition_penalty_is_known() -> None:
    assert read_sampling(RequestFields({"repeat_penalty": 1.2}), None).repetition_penalty == 1.2
    both = RequestFields({"repeat_penalty": 1.2, "repetition_penalty": 1.1})
    assert read_sampling(both, None).repetition_penalty == 1.1
    assert both.ignored == ()


def test_what_is_absent_is_left_to_the_model() -> None:
    assert read_sampling(RequestFields({}), None) == SamplingChoice()
