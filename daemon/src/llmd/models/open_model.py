"""Open a model directory: a plan and a checkpoint that match. No weight is read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from llmd.api.embedding import Embedding
from llmd.api.errors import CheckpointError, ModelError, UnsupportedModelError
from llmd.api.plan import ModelPlan
from llmd.api.plugins import Architecture, Config
from llmd.models.adapters.adapted_plan import with_adapters
from llmd.models.adapters.opening import add_adapters
from llmd.models.checkpoint import Checkpoint
from llmd.models.class_names import architecture_names
from llmd.models.embedding_config import check_direction, default_embedding
from llmd.models.headless import without_head
from llmd.models.hugging_face import CONFIG_FILE
from llmd.models.mapped_file import Mapper, map_file
from llmd.models.model_source import ModelSource, find_source
from llmd.models.plan_check import check_plan
from llmd.models.quantization_config import check_quantization
from llmd.models.scoring_config import read_scoring


class OpenModel(msgspec.Struct, frozen=True):
    """A model whose checkpoint was checked against its plan. The owner closes the checkpoint."""

    directory: Path
    config: Config
    plan: ModelPlan
    checkpoint: Checkpoint
    notices: tuple[str, ...]
    """Sentences for the user about harmless oddities."""
    embedding: Embedding | None = None
    """Set if the model embeds or scores instead of generating; the plan then has no head."""


def open_model(
    directory: Path,
    architectures: Mapping[str, Architecture],
    context_len: int | None = None,
    *,
    mapper: Mapper = map_file,
    adapters: Mapping[str, str] | None = None,
) -> OpenModel:
    """Read the configuration, plan the model, open its weights and check them against the plan.

    ``architectures`` has a key for each of `Architecture.names`; ``context_len`` is in tokens, None for the
    longest. ``adapters`` has directories, or GGUF files, of LoRA adapters by name; they are numbered in its
    order.

    Raises:
        NotFoundError: there is no such directory.
        UnsupportedModelError: no installed architecture has that name, or it lacks an option of the model.
        CheckpointError: a file is missing or damaged, or contradicts another.
    """
    source = find_source(directory)
    config, file = source.read_config(), source.config_file
    architecture = find_architecture(config, architectures, file=str(file))
    check_quantization(config, file)
    plan = _plan(architecture, config, context_len, file)
    embedding = _embedding(source, config, plan)
    if embedding is not None:
        if plan.groups:
            check_direction(config, file)
        plan = _within(without_head(plan), embedding.max_len, context_len)
    checkpoint = source.open_checkpoint(mapper=mapper)
    try:
        plan = source.with_stored_names(plan, checkpoint.tensors)
        notices = checkpoint.notices + check_plan(plan, checkpoint)
        if adapters:
            _check_takes_adapters(source, embedding)
            form = source.adapter_form()
            plan = with_adapters(plan, add_adapters(checkpoint, adapters, form, mapper=mapper))
    except BaseException:
        checkpoint.close()
        raise
    return OpenModel(directory, config, plan, checkpoint, notices, embedding)


def _check_takes_adapters(source: ModelSource, embedding: Embedding | None) -> None:
    if embedding is not None:
        raise UnsupportedModelError(
            f"{source.config_file}: LoRA adapters are for models that generate, and this one embeds",
            hint="merge the adapter into the model and serve the result",
        )


def _embedding(source: ModelSource, config: Config, plan: ModelPlan) -> Embedding | None:
    """Return how the output rows become a vector or score; None for a model that generates."""
    if plan.parts[-1].kind == "score":
        return read_scoring(config, str(source.config_file))
    embedding = source.read_embedding(config)
    if embedding is None and not plan.has_head:
        return default_embedding(config, causal=bool(plan.groups))
    return embedding


def find_architecture(
    config: Config, architectures: Mapping[str, Architecture], *, file: str
) -> Architecture:
    """Find the architecture by the configuration's ``architectures``, or else by its ``model_type``.

    Raises:
        CheckpointError: the configuration names no architecture.
        UnsupportedModelError: no installed architecture has that name.
    """
    names = architecture_names(config)
    if not names:
        raise CheckpointError(
            "names neither architectures nor model_type",
            file=file,
            hint="copy config.json again from where the model came from",
        )
    for name in names:
        if name in architectures:
            return architectures[name]
    near = difflib.get_close_matches(names[0], architectures, n=3, cutoff=0.0)
    raise UnsupportedModelError(
        f"{file}: no installed plugin runs the architecture {', '.join(names)}; the nearest known are "
        f"{', '.join(near) or 'none'}",
        hint="`llmd plugins list` shows what is installed",
    )


def _plan(architecture: Architecture, config: Config, context_len: int | None, path: Path) -> ModelPlan:
    """Plan the model. An architecture does not know the file of the configuration; add it to its errors."""
    try:
        return architecture.plan(config, context_len)
    except CheckpointError as error:
        raise CheckpointError(_without_file(error), file=str(path), hint=error.hint) from error
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{path}: {_without_file(error)}", hint=error.hint) from error


def _within(plan: ModelPlan, max_len: int | None, context_len: int | None) -> ModelPlan:
    """Return the plan limited to texts of at most ``max_len`` tokens."""
    most = min(plan.max_context_len, max_len or plan.max_context_len)
    window = min(plan.context_len, most) if context_len is None else context_len
    return msgspec.structs.replace(plan, context_len=window, max_context_len=most)


def _without_file(error: ModelError) -> str:
    return error.message.removeprefix(f"{CONFIG_FILE}: ")
