"""The text side of a derived model: that of its base, with words and settings of its own."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from llmd.chat.model_text import ModelText
from llmd.chat.templates.template_files import ChatTemplate, special_variables
from llmd.registry.derived import DerivedModel

# Ollama's names of settings, and those of the makers of models.
DEFAULTS = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "repetition_penalty",
}


def derived_text(base: ModelText, model: DerivedModel) -> ModelText:
    """What requests for a derived model are made with, in every dialect."""
    settings = {ours: model.parameters[name] for name, ours in DEFAULTS.items() if name in model.parameters}
    stop = model.parameters.get("stop", ())
    changes: dict[str, Any] = {
        "defaults": structs.replace(base.defaults, **settings),
        "opening": opening_of(model),
        "stops": (stop,) if isinstance(stop, str) else tuple(stop),
    }
    text = structs.replace(base, **changes)
    return with_template(text, model.template) if model.template else text


def opening_of(model: DerivedModel) -> tuple[dict[str, Any], ...]:
    """The messages that stand before a conversation."""
    system = ({"role": "system", "content": model.system},) if model.system else ()
    return (*system, *model.messages)


def with_template(text: ModelText, source: str) -> ModelText:
    """The same text side with another chat template, which sees what the model's own would see."""
    own = text.template
    template = (
        structs.replace(own, sources={"default": source})
        if isinstance(own, ChatTemplate)
        else ChatTemplate({"default": source}, *special_variables(text.tokenizer))
    )
    return structs.replace(text, template=template)
