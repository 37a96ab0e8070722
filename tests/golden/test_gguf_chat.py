"""A daemon answers a conversation from a GGUF file as it does from the
directory that the file was made of.
"""

from __future__ import annotations

from pathlib import Path

import openai
from openai.types.chat import ChatCompletionUserMessageParam

from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.guide import guide_directory
from tests.golden.converted import converted
from tests.serving.gguf_model import write_gguf_model
from tests.serving.model import write_model
from tests.serving.running import directories_below, running_daemon

QUESTION: ChatCompletionUserMessageParam = {"role": "user", "content": "Größe?<|im_end|>"}


def test_a_conversation_is_answered_as_from_the_directory(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    write_model(directories.models / "directory", extra_specials=("<extra>",))
    write_gguf_model(directories.models / "file" / "model.gguf")
    with running_daemon(directories, models=("directory", "file")) as running:
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)
        answers = [
            client.chat.completions.create(
                model=model, messages=[QUESTION], temperature=0, max_completion_tokens=24
            )
            for model in ("directory", "file")
        ]
        client.close()
    first, second = ((answer.usage, answer.choices[0].message.content) for answer in answers)
    assert first == second
    assert first[1]


def test_a_conversation_is_answered_as_before_the_model_was_converted(tmp_path: Path) -> None:
    directories = directories_below(tmp_path)
    directories.models.mkdir(parents=True)
    (directories.models / "guide").symlink_to(guide_directory())
    guide = directories.models / "file" / "guide.gguf"
    architectures = {name: found for found in llmd_architectures() for name in found.names}
    converted(guide_directory(), guide, architectures)
    converted(guide, directories.models / "directory", architectures)
    with running_daemon(directories, models=("guide", "file", "directory")) as running:
        client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0)
        answers = [
            client.chat.completions.create(
                model=model, messages=[{"role": "user", "content": "How do I see my devices?"}]
            )
            for model in ("guide", "file", "directory")
        ]
        client.close()
    texts = [answer.choices[0].message.content for answer in answers]
    assert texts == [texts[0]] * 3
    assert "llmd devices" in (texts[0] or "")
    assert (
        len(
            {
                (answer.usage.prompt_tokens, answer.choices[0].finish_reason)
                for answer in answers
                if answer.usage
            }
        )
        == 1
    )
