from __future__ import annotations

from typing import Any

from msgspec import structs

from llmd.api.errors import TemplateError
from llmd.chat.derived_text import derived_text, with_template
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.registry.derived import DerivedModel
from tests.serving.model import BOS

HELLO = ChatPrompt([{"role": "user", "content": "Hello"}])


def derived(text: ModelText, **changes: Any) -> ModelText:
    return derived_text(text, DerivedModel(base="tiny", created=0.0, **changes))


def test_settings_of_the_model_replace_those_of_its_makers(text: ModelText) -> None:
    changed = derived(text, parameters={"temperature": 0.3, "repeat_penalty": 1.2, "num_ctx": 5, "stop": "a"})
    assert (changed.defaults.temperature, changed.defaults.repetition_penalty) == (0.3, 1.2)
    assert changed.defaults.top_p == text.defaults.top_p
    assert changed.stops == ("a",)
    assert derived(text, parameters={"stop": ["a", "b"]}).stops == ("a", "b")


def test_words_of_the_model_stand_before_a_conversation(text: ModelText) -> None:
    shot = {"role": "user", "content": "Who?"}
    changed = derived(text, system="Be Mario.", messages=(shot,))
    whole = ChatPrompt([{"role": "system", "content": "Be Mario."}, shot, *HELLO.messages])
    assert changed.encode_chat(HELLO) == text.encode_chat(whole)


def test_template_of_the_model_takes_the_place_of_the_bases(text: ModelText) -> None:
    source = "{{ bos_token }}{% for m in messages %}{{ m.content }}!{% endfor %}"
    changed = derived(text, template=source)
    assert changed.encode_chat(HELLO) == (BOS, *b"Hello!")
    bare = structs.replace(text, template=TemplateError("there is none"))
    assert with_template(bare, source).encode_chat(HELLO) == (BOS, *b"Hello!")
