"""Small tokenizers of every kind, and a renderer of chat templates."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from llmd.chat.model_text import ModelText, load_model_text
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.tokenizers.tokenizer import Tokenizer
from llmd.chat.tokenizers.tokenizer_loader import load_tokenizer
from tests.serving.model import write_model

GOLDEN = Path(__file__).parents[2] / "golden"
KINDS = sorted(path.parent.name for path in GOLDEN.glob("tokenizers/*/expected.json"))

Load: TypeAlias = Callable[[str], Tokenizer]
Copy: TypeAlias = Callable[[str], Path]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def load() -> Load:
    """Load the committed tokenizer of a kind."""
    return lambda kind: load_tokenizer(GOLDEN / "tokenizers" / kind)


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    """Copy the files of a kind to a directory where a test may damage them."""

    def copy_files(kind: str) -> Path:
        return Path(shutil.copytree(GOLDEN / "tokenizers" / kind, tmp_path / kind))

    return copy_files


@pytest.fixture
def tokenizer(kind: str, load: Load) -> Tokenizer:
    return load(kind)


@pytest.fixture
def renderer() -> Iterator[TemplateRenderer]:
    """A renderer with a long time limit, for busy machines; tests of the limit make their own."""
    with TemplateRenderer(time_limit_s=20) as renderer:
        yield renderer


@pytest.fixture
def chatml() -> ChatTemplate:
    """A plain ChatML template over the special tokens of the committed tokenizers."""
    source = (
        "{% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\\n' ~ m.content ~ '<|im_end|>\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
    )
    return ChatTemplate(
        {"default": source}, {"eos_token": "<|im_end|>"}, frozenset({"<|im_start|>", "<|im_end|>"})
    )


@pytest.fixture(scope="session")
def model_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def text(model_directory: Path) -> Iterator[ModelText]:
    """The text side of the tiny model that tests serve."""
    with TemplateRenderer() as renderer:
        yield load_model_text(model_directory, renderer)
