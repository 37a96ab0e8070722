"""The text side of a derived model: its base model's, with other messages, settings and template."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from llmd.chat.model_text import ModelText
from llmd.chat.templates.template_files import ChatTemplate, special_variables
from llmd.registry.derived import DerivedModel

# Ollama's parameter names to fields of `GenerationDefaults`.
DEFAULTS = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repeat_penalty": "repetition_penalty",
}


def derived_text(base: ModelText, model: DerivedModel) -> ModelText:
    """Return the text side of a derived model; every API uses it."""
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
    """Return the messages that precede every conversation."""
    system = ({"role": "system", "content": model.system},) if model.system else ()
    return (*system, *model.messages)


def with_template(text: ModelText, source: str) -> ModelText:
    """Return the text side with another chat template, which gets the same variables as the model's own."""
    own = text.template
    template = (
        structs.replace(own, sources={"default": source})
        if isinstance(own, ChatTemplate)
        else ChatTemplate({"default": source}, *special_variables(text.tokenizer))
    )
    return structs.replace(text, template=template)
