"""What ``POST /api/show`` says about a model, and what its keys ask for confirmation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llmd.api.byte_size import format_bytes
from llmd_tui.screens.models.listing import ListedModel
from llmd_tui.widgets.details import Section
from llmd_tui.widgets.plain_text import one_line
from llmd_tui.widgets.words import seconds

GGUF_FORMATS = ("q8_0", "q4_0")


def sections(model: ListedModel, shown: Mapping[str, Any]) -> list[Section]:
    """Return the details of a model."""
    details, info = shown.get("details") or {}, shown.get("model_info") or {}
    return [
        Section("Cannot be used", model.reason),
        Section("Architecture", model.architecture or str(details.get("family", ""))),
        Section("Parameters", f"{model.parameters} ({model.num_parameters:,})" if model.parameters else ""),
        Section("Weights", f"{format_bytes(model.size_bytes)} in {model.format} ({model.file_format})"),
        Section("Context", f"{model.context_len} tokens" if model.context_len else ""),
        Section("Capabilities", ", ".join(shown.get("capabilities") or ())),
        Section("Other names", ", ".join(model.aliases)),
        Section("From", model.origin),
        Section("Directory", model.directory),
        Section("Changed", str(shown.get("modified_at", ""))[:19].replace("T", " ")),
        Section("Sampling defaults", str(shown.get("parameters") or "")),
        Section("System prompt", str(shown.get("system") or "")),
        Section("Configuration", "\n".join(f"{name}  {value}" for name, value in info.items())),
        Section("Chat template", str(shown.get("template") or "")),
        Section("Licence", str(shown.get("license") or "")),
    ]


def fit_warning(model: ListedModel, devices: Sequence[Mapping[str, Any]]) -> str:
    """Return why a model will not fit on any device, by what the daemon says of them; empty: it may fit."""
    usable = [one for one in devices if one.get("ok") and one.get("memory_bytes")]
    if not usable or not model.size_bytes:
        return ""
    room = {str(one.get("name")): int(one["memory_bytes"]) for one in usable}
    name = max(room, key=lambda one: room[one])
    if model.size_bytes <= room[name]:
        return ""
    return (
        f"The weights of {model.name} alone have {format_bytes(model.size_bytes)}, and no device has that much "
        f"memory: {name} has {format_bytes(room[name])}. Weights can be made smaller while they are loaded: "
        "`llmd serve --quant q4` or `quant` in the model's table of config.toml."
    )


def loaded(name: str, result: Mapping[str, Any]) -> str:
    """Return that a model was loaded, from the last line of ``POST /llmd/load``."""
    devices, load_s = ", ".join(result.get("devices") or ()), result.get("load_s")
    where = f" on {devices}" if devices else ""
    time = f" in {seconds(load_s * 1e3)}" if load_s else ""
    return "\n".join([f"Loaded {name}{where}{time}.", *map(one_line, result.get("notices") or ())])


def removal(model: ListedModel) -> str:
    """Return the question before a model is removed."""
    if model.base:
        return f"{model.name} is derived from {model.base}, which stays. Its own settings and template go."
    return (
        f"This deletes the files of {model.name} and frees {format_bytes(model.size_bytes)}; "
        "files that another model needs are kept. It was pulled from "
        f"{model.source}, so it can be pulled again."
    )


def not_removable(model: ListedModel) -> str:
    """Return why llmd does not remove a model."""
    if model.builtin:
        return f"{model.name} is built in and cannot be removed."
    return f"llmd did not fetch {model.name}; delete {model.directory} yourself."


def convert_commands(name: str) -> list[str]:
    """Return the commands that convert a model."""
    file = name.rsplit("/", 1)[-1].split(":", 1)[0]
    quantised = [f"llmd convert {name} {file}-{one}.gguf --quant {one}" for one in GGUF_FORMATS]
    return [f"llmd convert {name} {file}.gguf", *quantised, f"llmd convert {name} {file} --quant bf16"]
