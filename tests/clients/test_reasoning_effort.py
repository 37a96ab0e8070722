"""Clients name efforts of reasoning that a model's template does not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.serving.http import send
from tests.serving.model import TEMPLATE, write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# As Qwen3.8's: xhigh is the default.
STRICT = (
    "{% set effort = reasoning_effort | default('xhigh') %}"
    "{% if enable_thinking is not defined or enable_thinking %}"
    "{% if effort not in ('xhigh', 'medium', 'low') %}"
    "{{ raise_exception('Unexpected reasoning effort ' ~ effort ~ '.') }}{% endif %}"
    "{{ '<|im_start|>system\nReasoning effort is set to ' ~ effort ~ '.<|im_end|>\n' }}{% endif %}"
) + TEMPLATE
HELLO = "Hello"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("efforts"))
    write_model(directories.models / MODEL, template=STRICT)
    with running_daemon(directories) as running:
        yield running


def test_every_effort_of_openai_is_answered(served: RunningDaemon) -> None:
    message: Any = {"role": "user", "content": HELLO}
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as client:
        for effort in EFFORTS:
            named: Any = effort
            chat = client.chat.completions.create(
                model=MODEL, messages=[message], reasoning_effort=named, max_tokens=4
            )
            response = client.responses.create(
                model=MODEL, input=HELLO, reasoning={"effort": named}, max_output_tokens=4
            )
            assert chat.usage is not None
            assert response.usage is not None
            assert response.reasoning is not None
            assert response.reasoning.effort == effort
            assert chat.usage.prompt_tokens == response.usage.input_tokens


def test_every_effort_of_anthropic_is_answered(served: RunningDaemon) -> None:
    message: Any = {"role": "user", "content": HELLO}
    with anthropic.Anthropic(base_url=served.url, api_key="none", max_retries=0) as client:
        for effort in ("low", "medium", "high", "xhigh", "max"):
            named: Any = effort
            answer = client.messages.create(
                model=MODEL,
                messages=[message],
                max_tokens=4,
                thinking={"type": "adaptive"},
                output_config={"effort": named},
            )
            assert answer.usage.output_tokens == 4


def test_prompt_names_the_nearest_effort_that_the_template_accepts(served: RunningDaemon) -> None:
    def shown(effort: str) -> str:
        fields = {"model": MODEL, "messages": [{"role": "user", "content": HELLO}]}
        kwargs = {"chat_template_kwargs": {"reasoning_effort": effort}}
        prompt: str = send(served, "POST", "/apply-template", fields | kwargs).json["prompt"]
        return prompt.partition("set to ")[2].partition(".")[0]

    assert [shown(effort) for effort in EFFORTS] == "low low low medium xhigh xhigh xhigh".split()
