"""``/api/show``: everything about one model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from llmd.api.errors import ModelError
from llmd.chat.abilities import read_abilities
from llmd.chat.generation_defaults import GenerationDefaults, read_generation_defaults
from llmd.chat.template_files import template_sources
from llmd.registry.stored_model import StoredModel
from llmd.server.bodies import read_object
from llmd.server.dialects.ollama.description import describe_model
from llmd.server.dialects.ollama.listing import capabilities
from llmd.server.dialects.ollama.names import known_model, read_name
from llmd.server.dialects.ollama.times import rfc3339_of
from llmd.server.guards import peer_of
from llmd.server.json_response import json_response
from llmd.server.request_fields import RequestFields
from llmd.server.service import Service

MAX_LICENSE_BYTES = 1 << 20
# What the makers of a model call a setting, and what Ollama calls it.
PARAMETERS = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "repeat_penalty",
}


async def show(request: web.Request, service: Service) -> web.Response:
    """Describe a model; it is not loaded for that."""
    fields = RequestFields(await read_object(request))
    name = read_name(fields)
    allow_path = peer_of(request).is_unix
    model = await service.in_thread(known_model, service.models, name, allow_path=allow_path)
    return json_response(await service.in_thread(_body, model))


def _body(model: StoredModel) -> dict[str, Any]:
    description = describe_model(model)
    template = _template(model.directory)
    parameters = parameter_lines(default_parameters(model.directory))
    license_text = _license(model.directory)
    return {
        "license": license_text,
        "modelfile": modelfile(model.name, template, parameters),
        "parameters": parameters,
        "template": template,
        "system": "",
        "details": description.details(),
        "model_info": description.info(),
        "capabilities": capabilities(read_abilities(model.directory)),
        "modified_at": rfc3339_of(model.modified),
        "messages": [],
    }


def default_parameters(directory: Path) -> dict[str, Any]:
    """What the model's makers say about sampling, under Ollama's names."""
    try:
        defaults = read_generation_defaults(directory)
    except ModelError:
        defaults = GenerationDefaults()
    values = msgspec.structs.asdict(defaults)
    return {name: values[key] for key, name in PARAMETERS.items() if values[key] is not None}


def parameter_lines(parameters: dict[str, Any]) -> str:
    """One line for each value, names and values in columns; texts are quoted."""
    flat = [
        (name, item)
        for name, value in parameters.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    return "\n".join(f"{name:<30} {json.dumps(item, ensure_ascii=False)}" for name, item in flat)


def modelfile(name: str, template: str, parameters: str) -> str:
    """The model as a recipe; a template ends with three quotes only where it holds none."""
    quote = '"""' if '"""' not in template else "'''"
    lines = [f"# Modelfile of {name}", f"FROM {name}"]
    if template:
        lines.append(f"TEMPLATE {quote}{template}{quote}")
    lines += [f"PARAMETER {' '.join(line.split(maxsplit=1))}" for line in parameters.splitlines()]
    return "\n".join(lines) + "\n"


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
