"""Renders the conversations with every template as transformers' ``apply_chat_template`` does.

    python tests/golden/templates/generate.py            recompute and compare with expected.json
    python tests/golden/templates/generate.py --write    write expected.json

Runs in the oracle environment: transformers 4.57.6, jinja2 3.1.6; torch is not needed. The templates are our
own, in the style of each family. Where a template refuses a conversation, its message is kept instead of a
text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jinja2
import tokenizers
import transformers

PLACE = Path(__file__).parent


def main() -> int:
    families = json.loads((PLACE / "families.json").read_text())
    conversations = json.loads((PLACE / "conversations.json").read_text())
    expected = {
        family: {name: render(family, names, conversation) for name, conversation in conversations.items()}
        for family, names in families.items()
    }
    path = PLACE / "expected.json"
    if "--write" in sys.argv:
        path.write_text(json.dumps(expected, indent=1, ensure_ascii=True) + "\n")
        return 0
    committed = json.loads(path.read_text())
    different = [family for family in families if committed.get(family) != expected[family]]
    print(f"templates: {len(families)} families, {len(different)} differ {different or ''}")
    return 1 if different else 0


def render(family: str, names: dict[str, str], conversation: dict[str, Any]) -> dict[str, str]:
    template = (PLACE / f"{family}.jinja").read_text()
    empty = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=empty, chat_template=template, **names)
    try:
        text = tokenizer.apply_chat_template(
            [with_objects(message) for message in conversation["messages"]],
            tools=conversation.get("tools"),
            documents=conversation.get("documents"),
            add_generation_prompt=conversation.get("add_generation_prompt", True),
            tokenize=False,
            **conversation.get("extra", {}),
        )
    except jinja2.TemplateError as exc:
        if type(exc) is not jinja2.TemplateError:
            raise  # a mistake in the template; raise_exception raises the root itself
        return {"refused": str(exc)}
    return {"text": text}


def with_objects(message: dict[str, Any]) -> dict[str, Any]:
    """Arguments of tool calls as objects, which is how templates want them; requests carry JSON text."""
    calls = [
        {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
        for call in message.get("tool_calls", [])
    ]
    return {**message, "tool_calls": calls} if calls else message


if __name__ == "__main__":
    sys.exit(main())
