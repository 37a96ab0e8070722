"""A random Kimi Linear with a template of its family, as OpenAI's official client sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import openai
import pytest

from llmd.builtin.parsers.kimi import ARGUMENTS, CALL, CALL_END, SECTION_ENDS, SECTIONS
from tests.clients.test_gpt_oss import ASKED, TOOLS, WEATHER, only_call
from tests.golden.models.kimi import kimi_linear
from tests.serving.model import write_model
from tests.serving.running import RunningDaemon, directories_below, running_daemon

MODEL = "kimi"
TEMPLATE = Path(__file__).parents[1] / "golden/templates/kimi.jinja"
SPECIALS = (
    *("<think>", "</think>", "<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>"),
    *(SECTIONS[0], CALL, ARGUMENTS, CALL_END, SECTION_ENDS[0]),
)
FIELDS: dict[str, Any] = {"model": MODEL, "tools": TOOLS, "temperature": 0, "max_tokens": 600}


def model_of(**fields: Any) -> dict[str, Any]:
    sizes = {"head_dim": 16, "num_heads": 4, "short_conv_kernel_size": 4}
    return kimi_linear([3], sizes, model_max_length=4096, **fields)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("kimi"))
    write_model(
        directories.models / MODEL,
        family=model_of,
        extra_specials=SPECIALS,
        template=TEMPLATE.read_text(),
    )
    with running_daemon(directories, models=(MODEL,), device="cpu") as running:
        yield running


@pytest.fixture(scope="module")
def client(daemon: RunningDaemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_a_required_call_comes_back_under_the_number_that_the_model_reads(
    client: openai.OpenAI, daemon: RunningDaemon
) -> None:
    answer = client.chat.completions.create(messages=ASKED, tool_choice="required", **FIELDS)
    call = only_call(answer)
    jsonschema.validate(json.loads(call.function.arguments), WEATHER)
    assert (call.function.name, answer.choices[0].finish_reason) == ("weather", "tool_calls")
    message: Any = answer.choices[0].message.model_dump(exclude_none=True)
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    asked = {"model": MODEL, "messages": [*ASKED, message, result], "tools": TOOLS}
    prompt = httpx2.post(f"{daemon.url}/apply-template", json=asked).json()["prompt"]
    assert f"{CALL}functions.weather:0{ARGUMENTS}{{" in prompt
    assert "<|im_system|>weather<|im_middle|>## Return of functions.weather:0\nsunny" in prompt


def test_a_streamed_call_is_that_of_the_whole_answer(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(messages=ASKED, tool_choice="required", **FIELDS)
    chunks = list(
        client.chat.completions.create(messages=ASKED, tool_choice="required", stream=True, **FIELDS)
    )
    deltas = [call.function for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    arguments = "".join(delta.arguments or "" for delta in deltas if delta is not None)
    assert arguments == only_call(whole).function.arguments
