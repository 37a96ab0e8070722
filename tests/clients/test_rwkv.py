"""A random RWKV-7 with a vocabulary in the form of its own, chatting with OpenAI's official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from llmd.chat.tokenizers.longest_match_tokenizer import END
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.pager.states import SNAPSHOT_LEN
from tests.daemon.chat.tokenizers import rwkv_vocabulary
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.rwkv import rwkv7
from tests.golden.models.tiny import TinyModel
from tests.golden.samples import TEMPLATES, named
from tests.serving.running import RunningDaemon, directories_below, running_daemon

MODEL = "rwkv7"
BLANK = rwkv_vocabulary.tokens().index(b"\n\n") + 1
FIELDS: dict[str, Any] = {"model": MODEL, "temperature": 0, "max_tokens": 40}
ASKED: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " is there é? "}]
PROMPT = f"{END.text}System: Be brief.\n\nUser: is there é?\n\nAssistant:"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("rwkv"))
    directory = directories.models / MODEL
    config = rwkv7(vocab_size=len(rwkv_vocabulary.tokens()) + 1)
    write_checkpoint(TinyModel("served", config, seed=11), directory)
    rwkv_vocabulary.write_vocabulary(directory)
    template = named(TEMPLATES / "llama-cpp-rwkv-world.jinja").read_text()
    stated = {"eos_token": "\n\n", "chat_template": template}
    added = {"added_tokens_decoder": {str(BLANK): {"content": "\n\n"}}}
    (directory / "tokenizer_config.json").write_text(json.dumps(stated | added))
    with running_daemon(directories, models=(MODEL,), device="cpu") as running:
        yield running


@pytest.fixture(scope="module")
def client(daemon: RunningDaemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_a_chat_is_told_in_the_words_of_the_template(client: openai.OpenAI, daemon: RunningDaemon) -> None:
    answer = client.chat.completions.create(messages=ASKED, **FIELDS)
    ids = load_tokenizer(daemon.directories.models / MODEL).encode(PROMPT)
    told = client.completions.create(prompt=ids, **FIELDS)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(ids)
    assert answer.choices[0].message.content
    assert told.choices[0].text == answer.choices[0].message.content


def test_a_streamed_answer_is_the_whole_one(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(messages=ASKED, **FIELDS)
    chunks = list(client.chat.completions.create(messages=ASKED, stream=True, **FIELDS))
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    )
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason


def test_a_chat_goes_on_from_its_state(client: openai.OpenAI) -> None:
    first = {"role": "user", "content": "the User's there is " * 60}
    asked: list[Any] = [first, {"role": "assistant", "content": "there"}, {"role": "user", "content": "the"}]
    answers = [client.chat.completions.create(messages=asked, **FIELDS) for _ in range(2)]
    assert [cached_tokens(answer) for answer in answers] == [0, SNAPSHOT_LEN]
    assert answers[0].choices[0].message.content == answers[1].choices[0].message.content


def cached_tokens(answer: ChatCompletion) -> int:
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    return answer.usage.prompt_tokens_details.cached_tokens or 0


def test_an_empty_line_ends_an_answer(client: openai.OpenAI) -> None:
    bias: Any = {str(BLANK): 100}
    answer = client.chat.completions.create(messages=ASKED, logit_bias=bias, **FIELDS)
    assert (answer.choices[0].finish_reason, answer.choices[0].message.content) == ("stop", "")
