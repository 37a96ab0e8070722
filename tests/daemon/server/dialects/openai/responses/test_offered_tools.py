from __future__ import annotations

import json

from openai.types.responses import CustomTool as TheirCustomTool
from openai.types.responses import FunctionTool

from llmd.server.dialects.openai.responses.offered_tools import CustomTool, Function
from tests.clients.strict import check

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": 'start: "a"+'}
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def test_functions_are_repeated_as_the_client_has_them() -> None:
    echoed = Function("read", "read", None, None, SCHEMA, strict=False).echo()
    assert check(FunctionTool, json.dumps(echoed)).name == "read"
    assert (echoed["parameters"], echoed["strict"], echoed["description"]) == (SCHEMA, False, None)


def test_custom_tools_are_repeated_as_the_client_has_them() -> None:
    echoed = CustomTool("files.patch", "patch", "files", "Changes files.", GRAMMAR).echo()
    assert check(TheirCustomTool, json.dumps(echoed)).name == "patch"
    assert echoed["format"] == GRAMMAR


def test_a_model_sees_a_custom_tool_as_a_function_of_one_text() -> None:
    shown = CustomTool("files.patch", "patch", "files", "Changes files.", {"type": "text"}).prompt_tool()
    assert (shown["function"]["name"], shown["function"]["description"]) == ("files.patch", "Changes files.")
    parameters = shown["function"]["parameters"]
    assert parameters["properties"] == {"input": {"type": "string", "description": "Any text."}}
    assert (parameters["required"], parameters["additionalProperties"]) == (["input"], False)
