"""Write calls as text, in the form in which a model's parser reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from llmd.api.parsing import CallFormat, ChoiceTerm, ListTerm, SchemaTerm, Term, TextTerm, Tool

NamedCall = tuple[str, Any]
"""The name of a tool and the arguments."""


def written_calls(form: CallFormat, calls: Sequence[NamedCall]) -> str:
    """Return the text of one or more calls: what the grammar of the form allows for their arguments."""
    grammar = form.grammar([Tool(name, _schema_of(arguments)) for name, arguments in calls])
    written = [
        "".join(_written(term, arguments) for term in terms)
        for terms, (_, arguments) in zip(grammar.calls, calls, strict=True)
    ]
    return f"{grammar.trigger}{grammar.opening}{grammar.separator.join(written)}{grammar.closing}"


def _schema_of(arguments: Any) -> dict[str, Any]:
    """Return a schema that only these arguments match."""
    if not isinstance(arguments, Mapping):
        return {"type": "object"}
    properties = {
        key: {"enum": [value], **({"type": "string"} if isinstance(value, str) else {})}
        for key, value in arguments.items()
    }
    return {"type": "object", "properties": properties, "required": list(arguments)}


def _written(term: Term, arguments: Any) -> str:
    match term:
        case str():
            return term
        case SchemaTerm(schema):
            value = schema["enum"][0] if "enum" in schema else arguments
            return json.dumps(value, ensure_ascii=False)
        case TextTerm(end):  # the arguments are constants, so it is the number of a call
            return f"0{end}"
        case ChoiceTerm(options):
            return "".join(_written(one, arguments) for one in options[0])
        case ListTerm():
            return ""
