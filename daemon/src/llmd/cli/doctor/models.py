"""The models of the store: whether they can be used, and unfinished pulls."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from pathlib import Path

from llmd.api.byte_size import format_bytes
from llmd.cli.composition import build_store
from llmd.cli.doctor.check import Check, Surroundings, quoted, worst
from llmd.registry.manifest import Manifest, ManifestFile
from llmd.registry.pulled_models import PulledModels
from llmd.registry.store import Store

HASHED_BYTES = 1 << 20
"""Larger files are checked by their size alone: reading weights takes too long here."""


def checks(around: Surroundings) -> Iterator[Check]:
    models = around.directories.models
    yield from readable_checks(models)
    yield from worst(model_checks(build_store(around.directories)), Check("models", "ok", "none is damaged"))
    yield pulls_check(models)


def readable_checks(models: Path) -> Iterator[Check]:
    """Check that the folder of the models can be read: models in it are not found otherwise."""
    if not models.exists():
        return
    try:
        list(models.iterdir())
    except OSError as error:
        seen = f"{models} cannot be read: {error.strerror}"
        yield Check("models:folder", "fail", seen, f"make it readable: `chmod u+rx {quoted(models)}`")


def model_checks(store: Store) -> Iterator[Check]:
    """Yield a check for each model that is damaged or cannot be used."""
    for model in store.list():
        name, pulled = f"model:{model.name}", store.pulled_models
        manifest = None if model.builtin else pulled.manifest_of(model.directory)
        if manifest is not None and (seen := damage(model.directory, manifest)):
            yield Check(name, "fail", seen, f"remove it and pull it again: `{_again(model.name, manifest)}`")
        elif model.reason:
            yield Check(name, "warn", model.reason, f"`llmd show {model.name}` describes it")


def _again(name: str, manifest: Manifest) -> str:
    """Return the command that removes a model and pulls it again, if it is from a hub."""
    removing = f"llmd rm {shlex.quote(name)}"
    if not manifest.source:
        return removing
    pulled = name if name.startswith(manifest.source) else f"{manifest.source}@{manifest.commit}"
    return f"{removing} && llmd pull {shlex.quote(pulled)}"


def damage(directory: Path, manifest: Manifest) -> str:
    """Return what is wrong with the files of a pulled model; empty if nothing was found."""
    return next((reason for file in manifest.files if (reason := _fault(directory / file.path, file))), "")


def _fault(path: Path, expected: ManifestFile) -> str:
    try:
        size = path.stat().st_size
        if size != expected.size_bytes:
            return f"{path} has {size} bytes instead of {expected.size_bytes}"
        if size <= HASHED_BYTES and hashlib.sha256(path.read_bytes()).hexdigest() != expected.sha256:
            return f"{path} has changed since it was pulled"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    return ""


def pulls_check(models: Path) -> Check:
    """Check for files left by unfinished pulls."""
    blobs = PulledModels(models).blobs
    parts = blobs.unfinished()
    if not parts:
        return Check("pulls", "ok", "none is unfinished")
    return Check(
        "pulls",
        "warn",
        f"{len(parts)} files of unfinished pulls take {format_bytes(sum(parts))}",
        f"pull the model again to resume, or remove them: `rm -r {quoted(blobs.partial)}`",
    )
