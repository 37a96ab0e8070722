"""The models that a daemon has: those of its store, and those that it serves from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from llmd.api.decoding import prepared
from llmd_tui.state.daemon_state import DaemonState, Loading


class ListedModel(msgspec.Struct, frozen=True):
    """A model of ``GET /llmd/models``, with what ``GET /llmd/ps`` and the events say about it."""

    name: str
    directory: str = ""
    modified: str = ""
    architecture: str = ""
    num_parameters: int = 0
    format: str = ""
    file_format: str = ""
    size_bytes: int = 0
    context_len: int | None = None
    builtin: bool = False
    reason: str = ""
    """Why it cannot be used."""
    source: str = ""
    commit: str = ""
    base: str = ""
    """The model that it is derived from."""
    state: str = "unloaded"
    """``unloaded``, ``loading``, ``loaded``, ``restarting`` or ``failed``."""
    loading: Loading | None = None
    aliases: tuple[str, ...] = ()
    users: int = 0
    """Requests that hold it."""
    memory_bytes: int = 0
    """What it takes while it is loaded."""
    devices: tuple[str, ...] = ()
    expires_at: str | None = None
    waits_for: tuple[str, ...] = ()
    is_served: bool = False
    """Whether it is loaded, or was to be."""

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        if self.base:
            return f"derived from {self.base}"
        if self.source:
            return f"{self.source}@{self.commit[:8]}" if self.commit else self.source
        return "built in" if self.builtin else self.directory

    @property
    def parameters(self) -> str:
        """The number of its parameters, such as 1.24B; empty if it is not known."""
        for size, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "K")):
            if self.num_parameters >= size:
                return f"{self.num_parameters / size:.3g}{letter}"
        return str(self.num_parameters or "")

    @property
    def engine_name(self) -> str:
        """The name of the model that is loaded for it: a derived model is answered for by its base."""
        return self.base or self.name

    @property
    def is_removable(self) -> bool:
        """Whether llmd made it: it never deletes files of others."""
        return bool(self.base or self.source)


class Listing(msgspec.Struct, frozen=True):
    """All models by name, and the running pulls with their last steps."""

    models: Mapping[str, ListedModel] = {}
    pulls: Mapping[str, Sequence[Mapping[str, Any]]] = {}


def listing(stored: Mapping[str, Any], served: Mapping[str, Any]) -> Listing:
    """Return the models from the answers of ``/llmd/models`` and ``/llmd/ps``."""
    models = {one.name: one for one in (_stored(row) for row in stored.get("models", ()))}
    for row in served.get("models", ()):
        name = str(row.get("name", ""))
        models[name] = _served(models.get(name) or ListedModel(name), row)
    pulls = {str(one.get("name")): one.get("steps", ()) for one in stored.get("pulls", ())}
    return Listing(models, pulls)


def current(model: ListedModel, state: DaemonState) -> ListedModel:
    """Return the model as the latest events tell it."""
    served, loading = state.models.get(model.engine_name), state.loading.get(model.engine_name)
    if loading is not None:
        return msgspec.structs.replace(model, state="loading", loading=loading, is_served=True)
    if served is None:
        gone = msgspec.structs.replace(model, state="unloaded", loading=None)
        return gone if model.is_served or model.base else model
    reason = model.reason if served.status == model.state else ""  # that of its state before
    return msgspec.structs.replace(model, state=served.status, loading=None, reason=reason, is_served=True)


def time_left(model: ListedModel, now: datetime | None = None) -> str:
    """Return how long an idle model stays loaded, in words; empty if it is not unloaded by itself."""
    if model.users:
        return f"answers {model.users}" if model.users > 1 else "answers"
    if model.expires_at is None:
        return ""
    left = datetime.fromisoformat(model.expires_at) - (now or datetime.now(UTC))
    seconds = max(round(left.total_seconds()), 0)
    return f"{seconds // 60} min left" if seconds >= 60 else f"{seconds} s left"


def _stored(row: Mapping[str, Any]) -> ListedModel:
    known = {name: value for name, value in row.items() if name in ListedModel.__struct_fields__}
    loading = _loading(row.get("loading"))
    return msgspec.convert({**known, "loading": loading}, prepared(ListedModel), strict=False)


def _served(model: ListedModel, row: Mapping[str, Any]) -> ListedModel:
    loaded = row.get("loaded") or {}
    stages = loaded.get("stages", ())
    return msgspec.structs.replace(
        model,
        directory=model.directory or str(row.get("directory", "")),
        architecture=model.architecture or str(loaded.get("architecture", "")),
        num_parameters=model.num_parameters or int(loaded.get("num_parameters") or 0),
        format=model.format or ", ".join(loaded.get("formats", ())),
        size_bytes=model.size_bytes or sum(stage.get("weight_bytes", 0) for stage in stages),
        context_len=row.get("context_len") or model.context_len,
        reason=str(row.get("error") or model.reason),
        state=str(row.get("status", model.state)),
        loading=_loading(row.get("loading")),
        aliases=tuple(row.get("aliases", ())),
        users=int(row.get("users") or 0),
        memory_bytes=int(row.get("size_bytes") or 0),
        devices=tuple(dict.fromkeys(str(stage.get("device")) for stage in stages)),
        expires_at=row.get("expires_at"),
        waits_for=tuple(row.get("waits_for") or ()),
        is_served=True,
    )


def _loading(progress: Mapping[str, Any] | None) -> Loading | None:
    """Return the progress of a load; the routes call its step ``phase``, the events ``step``."""
    if not progress:
        return None
    step = progress.get("step") or progress.get("phase") or ""
    return Loading(str(step), int(progress.get("done") or 0), int(progress.get("total") or 0))
