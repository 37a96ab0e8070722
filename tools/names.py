"""Checks that definitions and files have no name that was replaced by a plainer one.

`REPLACED` lists, for a package or module, names that nothing defined in it may have, each with the name that
it got. A name is only refused there: a ``Place`` elsewhere may be a good name. ``x.py`` is a module, ``x/`` a
package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCES = (
    "daemon/src",
    "plugins/backend_cpu/src",
    "plugins/backend_cuda/src",
    "plugins/backend_vulkan/src",
    "plugins/transport/src",
    "tui/src",
    "examples/backend_example/src",
)
NATIVE = "plugins/backend_cpu/csrc"

REPLACED: dict[str, dict[str, str]] = {
    "llmd": {
        "Departure": "PreparedStep",
        "Arrival": "InFlightStep",
        "Cohort": "SequenceGroup",
        "cohort": "group",
        "twins": "siblings",
        "twin_key": "sibling_key",
        "WaitingLine": "WaitingQueue",
        "waiting_line.py": "waiting_queue",
        "WaitingRoom": "AdmissionLimits",
        "waiting_room.py": "admission_limits",
        "Residents": "ModelManager",
        "residents": "manager",
        "residents.py": "model_manager",
        "Residence": "ModelLeases",
        "residence": "leases",
        "residence.py": "model_leases",
        "Tenant": "ModelFootprint",
        "Ledger": "Metrics",
        "ledger": "metrics",
        "ledger.py": "metrics",
        "Observatory": "Snapshots",
        "observatory": "snapshots",
        "observatory.py": "snapshots",
        "Door": "RequestHandler",
        "PluginDesk": "AsyncPluginHost",
        "plugin_desk.py": "async_plugin_host",
        "Abilities": "Capabilities",
        "abilities.py": "capabilities",
        "purpose.py": "model_kind",
        "LoadedParts": "LoadedWeights",
        "mend": "fix",
        "grain": "phase",
        "hurry": "close_now",
    },
    "llmd.api": {"Ask": "GetReport"},
    "llmd.benchmark": {"Chosen": "ReportOptions", "Head": "ReportHeader"},
    "llmd.builtin": {"ReferenceParts": "ReferenceWeights"},
    "llmd.chat": {
        "Cut": "PreTokenizer",
        "cut_name": "pre_tokenizer_name",
        "cuts.py": "pre_tokenizers",
        "helper_process.py": "llmd.process.worker",
    },
    "llmd.cli": {"Verb": "Subcommand", "verbs.py": "subcommands"},
    "llmd.config": {"Given": "SettingValue", "given.py": "setting_values"},
    "llmd.conversion": {
        "Draft": "OutputPlan",
        "draft.py": "output_plan",
        "Move": "MappedTensor",
        "moves.py": "tensor_map",
        "find_moves": "map_tensors",
        "place.py": "output_path",
        "sameness.py": "verify",
    },
    "llmd.embedded": {"Wanted": "RequestOptions", "learn": "set_vocabulary"},
    "llmd.engine": {
        "Chain": "Pipeline",
        "chain.py": "pipeline",
        "Flight": "StepTickets",
        "flight.py": "steps",
        "Drawn": "SampledTokens",
        "Limits": "EngineLimits",
        "learn": "set_vocabulary",
        "grammar_frames.py": "grammar_messages",
    },
    "llmd.pager": {"KeyChain": "BlockKeys", "keys.py": "block_keys"},
    "llmd.registry": {
        "Library": "PulledModels",
        "library.py": "pulled_models",
        "Packings": "PackedWeightFiles",
        "packings.py": "packed_weights",
    },
    "llmd.sampling": {
        "Place": "RowContext",
        "Drawn": "SampledToken",
        "Draws": "DrawnTokens",
        "Draft": "PreparedDraws",
        "chain.py": "sampler_chain",
    },
    "llmd.server": {
        "answering/": "generation (the package), reply (of a dialect)",
        "Answering": "Reply",
        "Asked": "a name that says of what, such as RerankRequest",
        "Question": "a name that says of what, such as GenerateRequest",
        "Exchange": "PreparedRequest",
        "EmbeddingExchange": "PreparedEmbedding",
        "learn": "set_vocabulary",
    },
    "llmd.server.engines": {"Place": "QueueEntry"},
    "llmd.server.models": {"Memory": "MemoryBudget", "Follower": "PullSubscriber", "room.py": "eviction"},
    "llmd.server.telemetry": {
        "ModelWatch": "ModelMetrics",
        "model_watch.py": "model_metrics",
        "silent_watch": "no_metrics",
    },
    "llmd.testing": {"NullParts": "NullWeights"},
    "llmd_backend_cpu": {"CpuParts": "CpuWeights", "load_parts": "load_weights", "parts.py": "weights"},
}
REPLACED_NATIVE = {
    "Parts": "Weights",
    "parts.cpp": "weights.cpp",
    "parts.hpp": "weights.hpp",
    "leave_strips": "drop_row_strips",
}
_NATIVE_DEFINITION = re.compile(
    r"^\s*(?:class|struct|enum(?: class)?|void|bool|int\w*)\s+(\w+)", re.MULTILINE
)


class Definition(NamedTuple):
    """A name that a file defines, or the name of the file itself."""

    module: str
    name: str
    where: str


def main() -> None:
    """Print every old name and end with 1, or end with 0."""
    root = Path(__file__).resolve().parent.parent
    sys.exit("\n".join(faults(root)) or 0)


def faults(root: Path) -> list[str]:
    """The definitions and files that have an old name."""
    python = [one for source in SOURCES for one in python_definitions(root, root / source)]
    found = [(one, new) for one in python for new in [replacement(one)] if new is not None]
    found += [
        (one, REPLACED_NATIVE[one.name])
        for one in native_definitions(root, root / NATIVE)
        if one.name in REPLACED_NATIVE
    ]
    return [f"{one.where}: {one.name} was replaced by {new}" for one, new in found]


def replacement(definition: Definition) -> str | None:
    """What replaced a name in its module or in a package above it."""
    parts = definition.module.split(".")
    packages = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next(
        (REPLACED[one][definition.name] for one in packages if definition.name in REPLACED.get(one, {})), None
    )


def python_definitions(root: Path, folder: Path) -> Iterator[Definition]:
    """Modules and packages, classes, functions, and the fields and attributes of classes."""
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder).with_suffix("")
        parts = inside.parts[:-1] if inside.name == "__init__" else inside.parts
        if not parts:
            continue
        module, where = ".".join(parts), str(path.relative_to(root))
        yield Definition(module, f"{parts[-1]}/" if inside.name == "__init__" else f"{parts[-1]}.py", where)
        for node in ast.walk(ast.parse(path.read_text())):
            for name in defined_by(node):
                yield Definition(module, name, f"{where}:{getattr(node, 'lineno', 1)}")


def defined_by(node: ast.AST) -> list[str]:
    """The names that a statement defines for others to use."""
    if isinstance(node, ast.ClassDef):
        fields = [
            one.target.id
            for one in node.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        ]
        return [node.name, *fields]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return [node.attr.lstrip("_")]
    return []


def native_definitions(root: Path, folder: Path) -> Iterator[Definition]:
    """Files, and the classes, structs, enums and functions of C++ sources."""
    for path in sorted([*folder.rglob("*.cpp"), *folder.rglob("*.hpp")]):
        where = str(path.relative_to(root))
        yield Definition("", path.name, where)
        text = path.read_text()
        for found in _NATIVE_DEFINITION.finditer(text):
            line = text.count("\n", 0, found.start(1)) + 1
            yield Definition("", found[1], f"{where}:{line}")


if __name__ == "__main__":
    main()
