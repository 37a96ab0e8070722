"""The contracts of llmd: the only package that plugins import.

Descriptions and hooks: `plugins`, `hooks`. Models as programs: `ops`, `expert_ops`, `latent_ops`,
`compressed_ops`, `stream_ops`, `adapter_ops`, `activations`, `plan`, `program`, `encoding`, `tensors`,
`integer_formats`. Running them: `device`, `features`, `kernel_use`, `expert_cache`, `streaming`, `kv`,
`step`, `adapter_items`, `draws`, `random`, `spans`. Links: `transport`. Front and engine: `messages`,
`results`. Parts of answers and their parsers: `parts`, `parsing`. Errors: `errors`.

The names below are imported on first use: most modules here need numpy, which takes a quarter of a second to
import, and neither a plugin's description nor most commands need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmd.api.adapter_ops import (
        Adapt,
        LowRank,
    )
    from llmd.api.compressed_ops import (
        Compress,
        MergeAttention,
    )
    from llmd.api.device import (
        HOST_MEMORY,
        Device,
        DeviceInfo,
        DeviceOptions,
        DeviceProfile,
        HiddenRef,
        HostHidden,
        LoadedWeights,
        Progress,
        Refusal,
        SpillingDevice,
        Stage,
        StageLimits,
    )
    from llmd.api.draws import (
        Draws,
    )
    from llmd.api.encoding import (
        EncodedProgram,
        encode,
    )
    from llmd.api.errors import (
        CheckpointError,
        ConfigError,
        ContextLengthError,
        DaemonUnreachableError,
        DeviceError,
        DeviceLostError,
        DeviceMemoryError,
        EngineCrashedError,
        GrammarError,
        LinkClosedError,
        LinkError,
        LinkTimeoutError,
        LlmdError,
        MemoryBudgetError,
        ModelError,
        NotFoundError,
        PluginError,
        RequestError,
        TemplateError,
        TokenizerError,
        UnsupportedModelError,
    )
    from llmd.api.expert_ops import (
        Experts,
        Router,
    )
    from llmd.api.hooks import (
        hookimpl,
    )
    from llmd.api.integer_formats import (
        INTEGER_FORMATS,
        OWN_FORMATS,
        IntegerFormat,
    )
    from llmd.api.kernel_use import (
        KernelUse,
        SlowPath,
    )
    from llmd.api.kv import (
        KV_DTYPES,
        KV_SCALE_GROUP,
        KVDtype,
        kv_block_bytes,
    )
    from llmd.api.latent_ops import (
        HeadLinear,
        Indexer,
        Join,
    )
    from llmd.api.ops import (
        OP_KINDS,
        Activate,
        Add,
        Attention,
        Embed,
        EmbedPosition,
        EmbedTokenType,
        EncoderAttention,
        Gate,
        Glu,
        Head,
        Linear,
        Multiply,
        Norm,
        Op,
        Recurrence,
        Rope,
        RopeTable,
    )
    from llmd.api.parsing import (
        CallFormat,
        CallGrammar,
        CallReader,
        ChoiceTerm,
        ListTerm,
        ReasoningMarks,
        SchemaTerm,
        TextTerm,
        Tool,
    )
    from llmd.api.parts import (
        AnswerPart,
        CallArguments,
        CallStart,
        Reasoning,
        Text,
    )
    from llmd.api.plan import (
        HIDDEN,
        KVGroup,
        KVKind,
        LeftOut,
        ModelPlan,
        Part,
    )
    from llmd.api.plugins import (
        API_VERSION,
        ENTRY_POINT_GROUP,
        Architecture,
        Backend,
        Command,
        Dialect,
        Parser,
        Route,
        Transport,
    )
    from llmd.api.program import (
        ACTIVATION_DTYPES,
        PRECISIONS,
        ActivationDtype,
        Instruction,
        Pattern,
        Precision,
        Program,
        SlottedOp,
    )
    from llmd.api.random import (
        Purpose,
    )
    from llmd.api.spans import (
        Span,
        SpanKind,
    )
    from llmd.api.state_ops import (
        GatedDelta,
        StateSpace,
    )
    from llmd.api.step import (
        BLOCK_LEN,
        MAX_RAW_TOP,
        NUM_CANDIDATES,
        LateEdits,
        Selection,
        Step,
        StepResult,
        Ticket,
    )
    from llmd.api.step_buffers import (
        step_buffer_bytes,
    )
    from llmd.api.stream_ops import (
        CollapseStreams,
        MixStreams,
        StreamWeights,
    )
    from llmd.api.tensors import (
        PLAIN_FORMATS,
        SCALED_FORMATS,
        SCALED_GROUPS,
        Format,
        GroupScales,
        Outliers,
        TensorRef,
        TensorSource,
        Weight,
        WeightData,
    )
    from llmd.api.time_mix_ops import (
        GeneralizedDelta,
        TokenShift,
    )
    from llmd.api.transport import (
        Frame,
        Link,
        Listener,
    )

__all__ = [
    "ACTIVATION_DTYPES",
    "API_VERSION",
    "BLOCK_LEN",
    "ENTRY_POINT_GROUP",
    "HIDDEN",
    "HOST_MEMORY",
    "INTEGER_FORMATS",
    "KV_DTYPES",
    "KV_SCALE_GROUP",
    "MAX_RAW_TOP",
    "NUM_CANDIDATES",
    "OP_KINDS",
    "OWN_FORMATS",
    "PLAIN_FORMATS",
    "PRECISIONS",
    "SCALED_FORMATS",
    "SCALED_GROUPS",
    "Activate",
    "ActivationDtype",
    "Adapt",
    "Add",
    "AnswerPart",
    "Architecture",
    "Attention",
    "Backend",
    "CallArguments",
    "CallFormat",
    "CallGrammar",
    "CallReader",
    "CallStart",
    "CheckpointError",
    "ChoiceTerm",
    "CollapseStreams",
    "Command",
    "Compress",
    "ConfigError",
    "ContextLengthError",
    "DaemonUnreachableError",
    "Device",
    "DeviceError",
    "DeviceInfo",
    "DeviceLostError",
    "DeviceMemoryError",
    "DeviceOptions",
    "DeviceProfile",
    "Dialect",
    "Draws",
    "Embed",
    "EmbedPosition",
    "EmbedTokenType",
    "EncodedProgram",
    "EncoderAttention",
    "EngineCrashedError",
    "Experts",
    "Format",
    "Frame",
    "Gate",
    "GatedDelta",
    "GeneralizedDelta",
    "Glu",
    "GrammarError",
    "GroupScales",
    "Head",
    "HeadLinear",
    "HiddenRef",
    "HostHidden",
    "Indexer",
    "Instruction",
    "IntegerFormat",
    "Join",
    "KVDtype",
    "KVGroup",
    "KVKind",
    "KernelUse",
    "LateEdits",
    "LeftOut",
    "Linear",
    "Link",
    "LinkClosedError",
    "LinkError",
    "LinkTimeoutError",
    "ListTerm",
    "Listener",
    "LlmdError",
    "LoadedWeights",
    "LowRank",
    "MemoryBudgetError",
    "MergeAttention",
    "MixStreams",
    "ModelError",
    "ModelPlan",
    "Multiply",
    "Norm",
    "NotFoundError",
    "Op",
    "Outliers",
    "Parser",
    "Part",
    "Pattern",
    "PluginError",
    "Precision",
    "Program",
    "Progress",
    "Purpose",
    "Reasoning",
    "ReasoningMarks",
    "Recurrence",
    "Refusal",
    "RequestError",
    "Rope",
    "RopeTable",
    "Route",
    "Router",
    "SchemaTerm",
    "Selection",
    "SlottedOp",
    "SlowPath",
    "Span",
    "SpanKind",
    "SpillingDevice",
    "Stage",
    "StageLimits",
    "StateSpace",
    "Step",
    "StepResult",
    "StreamWeights",
    "TemplateError",
    "TensorRef",
    "TensorSource",
    "Text",
    "TextTerm",
    "Ticket",
    "TokenShift",
    "TokenizerError",
    "Tool",
    "Transport",
    "UnsupportedModelError",
    "Weight",
    "WeightData",
    "encode",
    "hookimpl",
    "kv_block_bytes",
    "step_buffer_bytes",
]


# Cheapest import first. Any module that has the name will do: it is the same object in all of them.
_MODULES = (
    "errors",
    "plugins",
    "hooks",
    "parts",
    "parsing",
    "transport",
    "random",
    "integer_formats",
    "tensors",
    "ops",
    "adapter_ops",
    "compressed_ops",
    "expert_ops",
    "latent_ops",
    "stream_ops",
    "plan",
    "program",
    "kernel_use",
    "kv",
    "device",
    "spans",
    "step",
    "step_buffers",
    "encoding",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{short}" for short in _MODULES)):
            if name in vars(module):
                return vars(module)[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
