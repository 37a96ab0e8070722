"""``POST /api/create``: derives a model from one in the store, with another name, prompt and settings."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web

from llmd.registry.derived import DerivedModel
from llmd.registry.names import check_model_name
from llmd.requests.fields import BadRequestError, RequestFields
from llmd.server.dialects.ollama.messages import read_messages
from llmd.server.dialects.ollama.names import read_name
from llmd.server.dialects.ollama.options import read_options
from llmd.server.dialects.ollama.progress import write_progress
from llmd.server.dialects.ollama.request import read_template
from llmd.server.http.bodies import read_object
from llmd.server.http.guards import peer_of
from llmd.server.models.adapter_model import AdapterModel
from llmd.server.models.model_table import ModelTable
from llmd.server.service import Service

STEPS = ("reading model metadata", "writing manifest", "success")
_FILES = "llmd serves model directories as they are: put the directory below its models folder"
REFUSED = {
    "files": _FILES,
    "adapters": "LoRA adapters are given to `llmd serve --lora NAME=DIR`",
    "quantize": "weights are quantised when they are loaded: use `llmd serve --quant q8`",
    "modelfile": "send its lines as fields: from, parameters, template, system, messages",
}


async def create(request: web.Request, service: Service) -> web.StreamResponse:
    """Create a derived model; it replaces an earlier derived model of that name."""
    fields = RequestFields(await read_object(request))
    name = read_name(fields)
    stream = fields.boolean("stream", default=True)
    for field, why in REFUSED.items():
        fields.refuse(field, (), why)
    name = new_name(service.models, name, "model")
    parameters = fields.nested("parameters")
    read_options(parameters, None)  # checks them as those of a request
    ignored = parameters.ignored
    record = read_record(fields, parameters, service.models, allow_path=peer_of(request).is_unix)
    await service.in_thread(service.models.store.derived.save, name, record)
    lines: list[dict[str, Any]] = [{"status": step} for step in STEPS]
    if ignored:
        lines[-1]["ignored"] = ignored
    return await write_progress(request, lines, stream=stream)


def read_record(
    fields: RequestFields, parameters: RequestFields, table: ModelTable, *, allow_path: bool
) -> DerivedModel:
    """Return the record of the new model. Missing fields are copied if the source is itself a derived model.

    Raises:
        NotFoundError: the source model does not exist.
        BadRequestError: a field is invalid.
    """
    source = fields.text("from")
    if not source:
        raise BadRequestError(
            "from is required: name the model to derive the new one from", code="invalid_value", param="from"
        )
    derived = table.derived_of(source)
    refuse_adapter(derived[1] if derived else None, "from")
    before = derived[1] if derived else DerivedModel(_base(table, source, allow_path=allow_path), 0.0)
    return DerivedModel(
        base=before.base,
        created=time.time(),
        system=fields.text("system") or before.system,
        template=read_template(fields) or before.template,
        messages=tuple(read_messages(fields)) or before.messages,
        parameters={**before.parameters, **{name: parameters.value(name) for name in parameters.names}},
        license="\n".join(fields.strings("license", 100)) or before.license,
    )


def new_name(table: ModelTable, text: str, param: str) -> str:
    """Return the name of a new derived model, without ``:latest``. ``param`` is the field that holds it.

    Raises:
        RequestError: the name is not valid.
        BadRequestError: a model that is not derived has that name.
    """
    name = check_model_name(text, param=param)
    if name in {*table.directories(), *table.aliases, *table.adapters()}:
        raise BadRequestError(
            f"the model {name} already exists and is not a derived model",
            code="model_exists",
            param=param,
            hint="choose another name",
        )
    return name


def refuse_adapter(record: DerivedModel | None, param: str) -> None:
    """Refuse to copy a model with an adapter, or to derive one from it: its adapter is in the settings.

    Raises:
        BadRequestError: the record is that of an adapter.
    """
    if isinstance(record, AdapterModel):
        raise BadRequestError(
            "a model with a LoRA adapter cannot be copied, and no other can be derived from it",
            code="unsupported_value",
            param=param,
            hint=f"name {record.base}, the model below it; adapters get their names from the setting lora",
        )


def _base(table: ModelTable, source: str, *, allow_path: bool) -> str:
    """Return the name of the base, or its directory if it is outside the store."""
    name, directory = table.locate(source, allow_path=allow_path)
    return name if name in table.store.directories() else str(directory)
