"""``/api/show``: describes one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from llmd.api.errors import ModelError
from llmd.chat.capabilities import capability_names, read_capabilities
from llmd.chat.generation_defaults import GenerationDefaults, read_generation_defaults
from llmd.chat.templates.template_files import template_sources
from llmd.registry.derived import DerivedModel
from llmd.requests.fields import RequestFields
from llmd.server.dialects.ollama.description import describe_model, parent_of
from llmd.server.dialects.ollama.names import NotFoundText, missing_as, read_name
from llmd.server.dialects.ollama.times import rfc3339_of
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.http.json_response import json_response
from llmd.server.models.known_models import KnownModel, known_model
from llmd.server.service import Service

MAX_LICENSE_BYTES = 1 << 20
# The name of a setting in a model's files, and Ollama's name.
PARAMETERS = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "repeat_penalty",
}


async def show(request: web.Request, service: Service) -> web.Response:
    """Describe a model, without loading it."""
    fields = RequestFields(await read_object(request))
    name = read_name(fields)
    allow_path = peer_of(request).is_unix
    with missing_as(NotFoundText.SHOWN, name):
        model = await service.in_thread(known_model, service.models, name, allow_path=allow_path)
    return json_response(await service.in_thread(_body, model))


def _body(model: KnownModel) -> dict[str, Any]:
    stored, record = model.stored, model.record or DerivedModel(base=model.name, created=0.0)
    description = describe_model(stored)
    template = record.template or _template(stored.directory)
    parameters = parameter_lines({**default_parameters(stored.directory), **record.parameters})
    return {
        "license": record.license or _license(stored.directory),
        "modelfile": modelfile(record, template, parameters),
        "parameters": parameters,
        "template": template,
        "system": record.system,
        "details": description.details(parent=parent_of(model)),
        "model_info": description.info(),
        "capabilities": capability_names(read_capabilities(stored.directory)),
        "modified_at": rfc3339_of(model.modified),
        "messages": list(record.messages),
    }


def default_parameters(directory: Path) -> dict[str, Any]:
    """Return the model's own sampling defaults, under Ollama's names."""
    try:
        defaults = read_generation_defaults(directory)
    except ModelError:
        defaults = GenerationDefaults()
    values = msgspec.structs.asdict(defaults)
    return {name: values[key] for key, name in PARAMETERS.items() if values[key] is not None}


def parameter_lines(parameters: dict[str, Any]) -> str:
    """Return a line for each value, with names and values in columns; strings are quoted."""
    flat = [
        (name, item)
        for name, value in parameters.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    return "\n".join(f"{name:<30} {json.dumps(item, ensure_ascii=False)}" for name, item in flat)


def modelfile(record: DerivedModel, template: str, parameters: str) -> str:
    """Return a Modelfile from which the model could be created again."""
    lines = ["# Modelfile of llmd", f"FROM {record.base}"]
    lines += [f"TEMPLATE {_quoted(template)}"] if template else []
    lines += [f"SYSTEM {_quoted(record.system)}"] if record.system else []
    lines += [f"PARAMETER {' '.join(line.split(maxsplit=1))}" for line in parameters.splitlines()]
    lines += [f"MESSAGE {message['role']} {message.get('content', '')}" for message in record.messages]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Quote with three double quotes, or three single ones if the text contains the former."""
    quote = '"""' if '"""' not in text else "'''"
    return f"{quote}{text}{quote}"


def _template(directory: Path) -> str:
    try:
        sources = template_sources(directory)
    except ModelError:
        return ""
    return sources.get("default") or next(iter(sources.values()), "")


def _license(directory: Path) -> str:
    for path in sorted(directory.glob("LICEN[SC]E*")):
        if path.is_file() and path.stat().st_size <= MAX_LICENSE_BYTES:
            return path.read_text(errors="replace")
    return ""
