"""The pages for users do what they say: their blocks are typed into a shell, with the real daemon."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from llmd.builtin.guide import guide_directory
from llmd.conversion.convert import convert
from llmd.engine.composition import make_host
from tests.docs.page import DOCS, ROOT
from tests.docs.session import can_be_left_out, reader
from tests.serving.adapters import write_adapter
from tests.serving.model import write_embedding_model, write_model
from tests.serving.reranker import write_reranker

PAGES = [
    *("tutorial.md", "clients.md", "install.md", "troubleshooting.md"),
    *sorted(path.relative_to(DOCS).as_posix() for path in (DOCS / "how-to").glob("*.md")),
]
SLOW = {
    "install.md",
    "how-to/convert-a-model.md",
    "how-to/find-out-why-it-is-slow.md",
    "how-to/save-memory.md",
    "how-to/use-it-from-c.md",
}
"""Pages that compile, convert or measure, so that together the others take less than half a minute."""


def write_models_for_search(home: Path) -> None:
    """Write a model that embeds and one that ranks into the models folder."""
    models = home / ".local" / "share" / "llmd" / "models"
    write_embedding_model(models / "embedder")
    write_reranker(models / "reranker")


def write_adapters(home: Path) -> None:
    """Write a model into the models folder, and two adapters of it."""
    model = write_model(home / ".local" / "share" / "llmd" / "models" / "base")
    for seed, name in enumerate(("sql", "formal")):
        write_adapter(home / "adapters" / name, model, seed=seed)


def copy_the_c_library(home: Path) -> None:
    """Copy the sources of the C library into the clone."""
    shutil.copytree(ROOT / "bindings", home / "llmd" / "bindings")


def write_a_blob_of_ollama(home: Path) -> None:
    """Write the built-in model as a GGUF file where Ollama keeps its own."""
    blobs = home / ".ollama" / "models" / "blobs"
    blobs.mkdir(parents=True)
    written = list(
        convert(guide_directory(), home / "guide.gguf", make_host(home).architectures(), quant="q8_0")
    )
    assert written
    (home / "guide.gguf").rename(blobs / "sha256-0123")


SUPPLIED: dict[str, Callable[[Path], object]] = {
    "how-to/embed-and-rank.md": write_models_for_search,
    "how-to/import-a-modelfile.md": write_a_blob_of_ollama,
    "how-to/use-lora-adapters.md": write_adapters,
    "how-to/use-it-from-c.md": copy_the_c_library,
}
"""What a reader of a page already has in the home folder."""

CLONED = "takes minutes and a network; `make test` itself runs it"
WHEELS = "tests/packaging installs the wheels"
NETWORK = "needs a public hub; tests/daemon/cli/test_pull.py pulls from one on this machine"
SERVICE = "needs systemd; tests/services installs and removes a service"
LEFT_OUT: dict[str, dict[str, str]] = {
    "tutorial.md": {
        "make setup": CLONED,
        "llmd pull qwen3:0.6b": NETWORK,
        "llmd tui": "needs a terminal; tests/tui runs it",
    },
    "clients.md": {
        "from langchain_openai import ChatOpenAI": "the package is not among those of the tests",
        "llmd serve qwen3 --alias 'claude-*=qwen3' --max-ctx 65536": "needs a large model",
        "ANTHROPIC_BASE_URL=http://127.0.0.1:8642 ANTHROPIC_API_KEY=none claude": "needs Claude Code",
    },
    "install.md": {
        **dict.fromkeys(["git clone URL llmd", "git pull", "make setup"], CLONED),
        "python3 -m venv ~/llmd-env": WHEELS,
        "~/llmd-env/bin/pip install --no-index --find-links wheelhouse"
        " llmd-daemon llmd-backend-cpu llmd-tui": WHEELS,
        "~/llmd-env/bin/llmd --version": WHEELS,
        **dict.fromkeys(
            [
                '~/llmd-env/bin/pip install --find-links wheelhouse "llmd-backend-cuda[cuda12]"',
                "~/llmd-env/bin/llmd devices",
                "~/llmd-env/bin/llmd check cuda:0",
                'PIP_FIND_LINKS="$PWD/wheelhouse" llmd plugins install "llmd-backend-cuda[cuda12]"',
            ],
            "needs a card and downloads CuPy; tests/packaging/test_backend_cuda.py installs the wheel",
        ),
        **dict.fromkeys(
            [
                "sudo apt-get install g++ make libvulkan-dev libfmt-dev",
                "~/llmd-env/bin/pip install --find-links wheelhouse llmd-backend-vulkan",
                "~/llmd-env/bin/python -m llmd_backend_vulkan.build_kompute",
            ],
            "downloads and compiles Kompute; tests/packaging/test_backend_vulkan.py installs the wheel",
        ),
        **dict.fromkeys(["llmd service install", "llmd service status", "llmd service uninstall"], SERVICE),
    },
    "how-to/embed-and-rank.md": {
        "llmd pull Qwen/Qwen3-Embedding-0.6B": NETWORK,
        "llmd pull Qwen/Qwen3-Reranker-0.6B": NETWORK,
    },
    "how-to/trace-steps.md": {"a model on one card, two steps in flight": "a picture"},
    "how-to/use-a-gguf-file.md": {"llmd pull ORG/NAME:Q8_0": NETWORK},
    "how-to/run-as-a-service.md": dict.fromkeys(
        [
            "llmd service install",
            "loginctl enable-linger",
            "llmd service status",
            "llmd service logs -f",
            "llmd reload",
            "llmd service uninstall",
        ],
        SERVICE,
    ),
    "how-to/serve-on-the-network.md": dict.fromkeys(
        ["server {", "llm.example.org {", "scrape_configs:"],
        "needs nginx, Caddy or Prometheus, and a public name",
    ),
}
"""Commands, and first lines of other blocks, that are not tried here, with the reason."""


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in SLOW)) for name in PAGES]
)
def test_page_does_what_it_says(name: str, tmp_path: Path, probes: Path) -> None:
    with reader(tmp_path, probes) as someone:
        if supply := SUPPLIED.get(name):
            supply(tmp_path)
        faults = someone.follow((DOCS / name).read_text(), LEFT_OUT.get(name, {}))
    assert faults == [], "\n\n".join([f"docs/{name}", *faults])


def test_everything_that_is_left_out_is_on_its_page() -> None:
    extra = {
        name: set(texts) - can_be_left_out((DOCS / name).read_text()) for name, texts in LEFT_OUT.items()
    }
    assert not any(extra.values()), extra


def test_a_block_that_is_neither_run_nor_left_out_is_refused(tmp_path: Path, probes: Path) -> None:
    with reader(tmp_path, probes) as someone, pytest.raises(AssertionError, match="line 2"):
        someone.follow("```\nllmd ps\n```\n")
    with reader(tmp_path / "other", probes) as someone:
        (fault,) = someone.follow("```console\n$ echo one\ntwo\n```\n")
    assert "one" in fault
