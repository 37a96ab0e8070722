"""llmd starts from its cache, forgets it, and loads again after the daemon has unloaded the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.checkpoint import write_checkpoint
from bench.shapes import Shape
from bench.start_sides import CONTEXT_LEN, FIRST_ID, Llmd, Prompts, unload
from llmd.api.step import BLOCK_LEN

TINY = Shape("tiny", hidden=64, layers=2, heads=2, kv_heads=1, head_dim=32, ffn=128, vocab=1000)


@pytest.fixture
def llmd(tmp_path: Path) -> Llmd:
    model = write_checkpoint(TINY, tmp_path / "tiny")
    return Llmd(model, "q8_g32", tmp_path, 1)


def packed(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.packed") if path.stat().st_size]


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_a_daemon_keeps_packed_weights_until_it_forgets_them(llmd: Llmd, tmp_path: Path) -> None:
    with llmd.launch() as daemon:
        daemon.first_token_s(Prompts().draw())
        daemon.wait_until_idle()
    assert packed(tmp_path)
    llmd.forget()
    assert not packed(tmp_path)
    assert (tmp_path / "tiny" / "model.safetensors").exists()


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_a_running_daemon_loads_the_model_again_and_again(llmd: Llmd) -> None:
    prompts = Prompts()
    with llmd.unloaded() as daemon:
        for _ in range(2):
            daemon.ask(prompts.draw())
            unload(daemon)
        with pytest.raises(RuntimeError, match="/llmd/stop with 404"):
            unload(daemon)  # so that the next request loads it


def test_a_daemon_starts_without_a_model(llmd: Llmd) -> None:
    with llmd.launch_empty() as daemon:
        assert daemon.listening_s() > 0


def test_no_prompt_is_found_in_a_cache() -> None:
    prompts = Prompts()
    drawn = [prompts.draw() for _ in range(100)]
    assert len({prompt[0] for prompt in drawn}) == 100
    assert all(len(prompt) < BLOCK_LEN < CONTEXT_LEN for prompt in drawn)
    assert all(FIRST_ID <= token < TINY.vocab for prompt in drawn for token in prompt)
