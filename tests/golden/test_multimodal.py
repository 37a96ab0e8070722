"""The text part of models that also see or hear answers as the text model,
of which transformers made the golden.

`tests.golden.oracle.check_multimodal` shows that transformers' own classes of such models answer that, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from llmd.engine.loading import OpenDevice
from llmd.models.open_model import open_model
from tests.golden.engines import Architectures, engine, greedy_tokens, logits_error
from tests.golden.expected import read_expected
from tests.golden.models.catalog import tiny_model
from tests.golden.models.tiny import TinyModel
from tests.golden.multimodal import (
    Rename,
    as_idefics_names_it,
    as_published,
    as_written_now,
    write_phi4_multimodal,
    write_phi4_of_transformers,
    write_vision_language,
)

BOUND = 1e-9
Write = Callable[[TinyModel, Path], Path]
VISION = "2 tensors for vision"


def seeing(architecture: str, below: Rename, *tower: str, text_type: str | None = None) -> Write:
    return partial(
        write_vision_language,
        architecture=f"{architecture}ForConditionalGeneration",
        below=below,
        tower=tower,
        text_type=text_type,
    )


OLD = (as_published, "vision_tower", "multi_modal_projector")
NEW = (as_written_now, "model.vision_tower", "model.multi_modal_projector")
GEMMA4 = (
    as_written_now,
    *("model.vision_tower", "model.audio_tower", "model.embed_vision", "model.embed_audio"),
)
GEMMA4_UNIFIED = (as_written_now, "model.embed_vision", "model.embed_audio")
QWEN3_5 = (as_written_now, "model.visual")
IDEFICS = (as_idefics_names_it, "model.vision_model", "model.connector")


MODELS: dict[str, tuple[str, Write, str]] = {
    "phi4 short": ("phi4-mini-short", write_phi4_multimodal, "33 tensors for vision and speech"),
    "phi4 long": ("phi4-mini-long", write_phi4_multimodal, "33 tensors for vision and speech"),
    "phi4 of transformers": ("phi4-mini-long", write_phi4_of_transformers, "1 tensors for vision and speech"),
    "gemma3": ("gemma3", seeing("Gemma3", *OLD), VISION),
    "gemma3 written now": ("gemma3-linear-rope", seeing("Gemma3", *NEW), VISION),
    "mistral3": ("mistral-no-window", seeing("Mistral3", *OLD), VISION),
    "mistral3 written now": ("mistral-no-window", seeing("Mistral3", *NEW), VISION),
    "llava": ("llama-f16", seeing("Llava", *OLD), VISION),
    "llava next": ("mistral-window", seeing("LlavaNext", *NEW), VISION),
    "internvl": ("qwen2-untied", seeing("InternVL", *OLD), VISION),
    "internvl of qwen3": ("qwen3-tied", seeing("InternVL", *NEW), VISION),
    "idefics3": ("llama32-tied", seeing("Idefics3", *IDEFICS), VISION),
    "gemma4": ("gemma4-per-layer", seeing("Gemma4", *GEMMA4), "4 tensors for vision and audio"),
    "gemma4 with experts": ("gemma4-moe", seeing("Gemma4", *GEMMA4), "4 tensors for vision and audio"),
    "gemma4 unified": (
        "gemma4",
        seeing("Gemma4Unified", *GEMMA4_UNIFIED, text_type="gemma4_unified_text"),
        "2 tensors for vision and audio",
    ),
    "qwen3.5": ("qwen3-5", seeing("Qwen3_5", *QWEN3_5), "1 tensors for vision"),
    "qwen3.5 with experts": ("qwen3-5-moe", seeing("Qwen3_5Moe", *QWEN3_5), "1 tensors for vision"),
    "smolvlm": ("smollm", seeing("SmolVLM", *IDEFICS), VISION),
}
each_model = pytest.mark.parametrize(("name", "write", "left_out"), MODELS.values(), ids=MODELS)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@each_model
def test_text_is_answered_as_by_the_text_model(
    name: str,
    write: Write,
    left_out: str,
    device: str,
    tmp_path: Path,
    architectures: Architectures,
    open_device: OpenDevice,
) -> None:
    case = tiny_model(name)
    expected = read_expected(name)
    directory = write(case, tmp_path / "model")
    with engine(case, directory, architectures, open_device, device=device) as core:
        assert logits_error(core, case, expected) <= BOUND
    with engine(case, directory, architectures, open_device, device=device) as core:
        assert greedy_tokens(core, case) == expected.tokens.tolist()


@each_model
def test_what_is_left_out_is_counted_and_said(
    name: str, write: Write, left_out: str, tmp_path: Path, architectures: Architectures
) -> None:
    opened = open_model(write(tiny_model(name), tmp_path / "model"), architectures)
    with opened.checkpoint:
        assert opened.notices == (f"{left_out} are left out: llmd runs only the text model",)
