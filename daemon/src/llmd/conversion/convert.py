"""Convert a model to another form that computes the same. The target appears only once it is complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import msgspec

from llmd.api.plan import ModelPlan
from llmd.api.plugins import Architecture
from llmd.api.tensors import Format
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from llmd.conversion.directory_target import DirectoryTarget
from llmd.conversion.gguf_target import GgufTarget
from llmd.conversion.output_path import (
    FreeBytes,
    check_place,
    check_space,
    free_bytes,
    is_gguf_target,
    put,
    temporary_output,
)
from llmd.conversion.output_plan import OutputPlan, Source, Target, open_source
from llmd.conversion.tensor_map import map_tensors
from llmd.conversion.tensor_reader import TensorReader
from llmd.conversion.text_files import has_tokenizer
from llmd.conversion.verify import check_same_plan, check_same_text
from llmd.models.model_source import find_source
from llmd.models.new_weights import write_header, write_tensors
from llmd.models.open_model import find_architecture, open_model


class Progress(msgspec.Struct, frozen=True):
    """Progress of a conversion."""

    completed: int
    """Bytes of weights written."""
    total: int
    """Bytes of weights to write."""


class Report(msgspec.Struct, frozen=True):
    """The result of a conversion."""

    target: Path
    size_bytes: int
    num_tensors: int
    formats: Mapping[Format, int]
    """Number of tensors of each format."""
    notices: tuple[str, ...] = ()
    """Sentences about changes that the user did not request."""


def convert(
    source: Path,
    target: Path,
    architectures: Mapping[str, Architecture],
    *,
    quant: Format | None = None,
    force: bool = False,
    free: FreeBytes = free_bytes,
) -> Generator[Progress, None, Report]:
    """Write the model in ``source`` to ``target``: a GGUF file if it ends in ``.gguf``, otherwise a
    directory.

    Yields progress and returns a report. Nothing appears at ``target`` until the end, and nothing is left
    behind if the conversion fails.

    Raises:
        NotFoundError: there is no model in ``source``.
        ModelError: it is damaged, or the other form cannot express it so that it computes the same.
        ConfigError: weights cannot be converted to ``quant``, or ``target`` is not a usable name.
        ConflictError: ``target`` exists, and ``force`` is false or must not replace it.
        DiskSpaceError: the disk has too little space.
    """
    kind: Target = GgufTarget() if is_gguf_target(target) else DirectoryTarget()
    check_place(source, target, force=force)
    opened = open_source(source, architectures)
    with opened.model.checkpoint as checkpoint:
        plan = kind.plan(opened, quant)
        tensor_map = map_tensors(opened.model.plan, plan)
        formats = kind.formats(opened, tensor_map, quant)
        output = kind.output(opened, plan, tensor_map, formats)
        reader = TensorReader(checkpoint, tensor_map, formats.by_name)
        with temporary_output(target) as path:
            check_space(path, output.layout.num_bytes + sum(map(len, output.files.values())), free)
            yield from _write(kind.weights(path), path, output, opened, plan, reader, architectures)
            put(path, target)
            return _report(target, output, (*opened.model.notices, *formats.notices, *output.notices))


def _write(
    weights: Path,
    path: Path,
    output: OutputPlan,
    source: Source,
    plan: ModelPlan,
    reader: TensorReader,
    architectures: Mapping[str, Architecture],
) -> Iterator[Progress]:
    """Write the output to ``path``; check it before its weights are written, which takes long."""
    _write_files(path, output)
    write_header(weights, output.layout)
    completed, total = 0, sum(tensor.num_bytes for tensor in output.tensors)
    with weights.open("r+b") as file:
        steps = write_tensors(
            file,
            output.layout,
            output.tensors,
            lambda name: [output.given[name]] if name in output.given else reader(name),
        )
        for _, tensor in zip(output.given, steps, strict=False):
            completed += tensor.num_bytes
        file.flush()
        _check(path, source, plan, architectures)
        yield Progress(completed, total)
        for tensor in steps:
            completed += tensor.num_bytes
            source.model.checkpoint.release()
            yield Progress(completed, total)


def _write_files(path: Path, output: OutputPlan) -> None:
    for name, content in output.files.items():
        place = path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _check(path: Path, source: Source, plan: ModelPlan, architectures: Mapping[str, Architecture]) -> None:
    """Check that the written model matches its source.

    Raises:
        ModelError: it does not.
    """
    what = "a GGUF file" if path.is_file() else "a directory"
    check_same_plan(plan, _planned(path, plan, architectures), what)
    open_model(path, architectures).checkpoint.close()
    if has_tokenizer(source.path):
        check_same_text(load_tokenizer(source.path), load_tokenizer(path), what)


def _planned(path: Path, plan: ModelPlan, architectures: Mapping[str, Architecture]) -> ModelPlan:
    """Plan the written model, whose tensors are those of ``plan``, without a look at them."""
    form = find_source(path)
    config = form.read_config()
    written = find_architecture(config, architectures, file=str(form.config_file)).plan(config, None)
    return form.with_stored_names(written, {ref.name for ref in plan.tensor_refs()})


def _report(target: Path, output: OutputPlan, notices: tuple[str, ...]) -> Report:
    return Report(
        target,
        output.layout.num_bytes,
        len(output.tensors),
        dict(Counter(tensor.format for tensor in output.tensors).most_common()),
        notices,
    )
