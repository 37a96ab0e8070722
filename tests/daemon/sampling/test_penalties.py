"""Counts over all or the last tokens of prompt and output, compared with a fresh count for each token."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmd.api.samplers import SamplingParams
from llmd.sampling.penalties import Penalties

TOKENS = st.lists(st.integers(0, 7), max_size=20)


@given(prompt=TOKENS, output=TOKENS, appended=TOKENS, window=st.sampled_from([1, 2, 5, 64]))
def test_a_window_counts_the_last_tokens_of_prompt_and_output(
    prompt: list[int], output: list[int], appended: list[int], window: int
) -> None:
    params = SamplingParams(
        seed=0, repetition_penalty=1.3, frequency_penalty=0.5, presence_penalty=0.25, penalty_last_n=window
    )
    penalties = Penalties(params, prompt, output)
    before = {token: penalties.of(token) for token in range(8)}
    for token in appended:
        for changed in penalties.append(token):
            before[changed] = penalties.of(changed)
    recent = [*prompt, *output, *appended][-window:]
    expected = {
        token: (1.3, -0.5 * recent.count(token) - 0.25) if token in recent else (1.0, 0.0)
        for token in range(8)
    }
    assert {token: penalties.of(token) for token in range(8)} == expected
    assert before == expected, "tokens not reported as changed have changed"


def test_without_a_window_repetition_counts_the_prompt_and_the_others_do_not() -> None:
    params = SamplingParams(seed=0, repetition_penalty=1.3, frequency_penalty=0.5)
    penalties = Penalties(params, [1, 2], [2, 3])
    assert set(penalties.tokens) == {1, 2, 3}
    assert [penalties.of(token) for token in (1, 2, 4)] == [(1.3, 0.0), (1.3, -0.5), (1.0, 0.0)]
    frequency = SamplingParams(seed=0, frequency_penalty=0.5)
    assert set(Penalties(frequency, [1, 2], [2, 3]).tokens) == {2, 3}
