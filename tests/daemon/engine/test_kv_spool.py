"""The prefix cache of an unloaded model is restored, and nothing else is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from llmd.api import KV_DTYPES, KVDtype
from llmd.api.messages import Load, StageSpec, StopParams, Submit
from llmd.api.samplers import SamplingParams
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.builtin.reference.device import ReferenceDevice
from llmd.engine.core import EngineCore
from llmd.engine.kv_spool import KVSpool
from llmd.engine.loading import LoadedModel, load_model
from llmd.registry.spools import Spools
from tests.golden.checkpoint import write_checkpoint
from tests.golden.models.catalog import tiny_model

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
FULL, WINDOWED = tiny_model("tinyllama"), tiny_model("gemma2")
PROMPT = tuple(range(2, 60))
CACHED = 48


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(FULL, tmp_path_factory.mktemp("models") / FULL.name)


@pytest.fixture
def spools(tmp_path: Path) -> Spools:
    return Spools(tmp_path)


@contextmanager
def opened(directory: Path, spools: Spools, **options: Any) -> Iterator[LoadedModel]:
    chosen: dict[str, Any] = {"slots": 2, "context_len": 96, "kv_dtype": "f32", "kv_spool": 1 << 30} | options
    model = load_model(
        Load(str(directory), **chosen), ARCHITECTURES, lambda _: ReferenceDevice(), lambda _: None, spools
    )
    try:
        yield model
    finally:
        model.close()


def answer(model: LoadedModel, prompt: tuple[int, ...] = PROMPT, salt: str = "") -> tuple[int, list[int]]:
    """Return the number of cached tokens, and the answer."""
    core = model.runner
    assert isinstance(core, EngineCore)
    sampling = SamplingParams(seed=5, temperature=0.9)
    core.submit(Submit(1, prompt, sampling, StopParams(max_tokens=6), cache_salt=salt))
    cached, tokens = 0, []
    while core.busy:
        output = core.step()
        cached += sum(one.cached_tokens for one in output.started)
        tokens += [one.token for one in output.tokens]
    core.pager.check_integrity()
    return cached, tokens


def spool_of(model: LoadedModel) -> KVSpool:
    assert model.spool is not None
    return model.spool


def save(model: LoadedModel) -> None:
    spool_of(model).save(lambda: False)


def spooled(directory: Path, spools: Spools, **options: Any) -> list[int]:
    """Answer a request, then unload with a spool; return the answer."""
    with opened(directory, spools, **options) as model:
        cached, tokens = answer(model)
        assert cached == 0
        save(model)
    return tokens


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_a_prompt_is_found_by_the_next_engine_which_answers_the_same(
    directory: Path, spools: Spools, kv_dtype: KVDtype
) -> None:
    tokens = spooled(directory, spools, kv_dtype=kv_dtype)
    with opened(directory, spools, kv_dtype=kv_dtype) as model:
        assert answer(model) == (CACHED, tokens)


def test_window_groups_and_stages_are_put_together_again(tmp_path: Path, spools: Spools) -> None:
    directory = write_checkpoint(WINDOWED, tmp_path / WINDOWED.name)
    layers = int(WINDOWED.config["num_hidden_layers"])
    last = str(layers - 1)
    split = (
        StageSpec("a", "embed", "embed"),
        StageSpec("b", "0", "0"),
        StageSpec("a", "1", last),
        StageSpec("b", "head", "head"),
    )
    tokens = spooled(directory, spools, stages=split)
    with opened(directory, spools, stages=split) as model:
        assert answer(model) == (CACHED, tokens)
    with opened(directory, spools) as model:
        assert answer(model) == (0, tokens), "another plan has another fingerprint"


def test_salted_prompts_stay_apart(directory: Path, spools: Spools) -> None:
    with opened(directory, spools) as model:
        answer(model, salt="mine")
        save(model)
    with opened(directory, spools) as model:
        assert answer(model)[0] == 0
        assert answer(model, salt="theirs")[0] == 0
        assert answer(model, salt="mine")[0] == CACHED


def test_only_its_user_may_read_it_and_it_tells_no_tokens_by_name(directory: Path, spools: Spools) -> None:
    spooled(directory, spools)
    file = spools.path(directory)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("options", [{"kv_dtype": "f16"}, {"quant": "q8"}])
def test_settings_that_change_keys_and_values_drop_it(
    directory: Path, spools: Spools, options: dict[str, Any]
) -> None:
    spooled(directory, spools)
    with opened(directory, spools, **options) as model:
        assert answer(model)[0] == 0
    assert not spools.path(directory).exists()


def test_a_model_whose_files_changed_drops_it(tmp_path: Path, spools: Spools) -> None:
    directory = write_checkpoint(FULL, tmp_path / FULL.name)
    spooled(directory, spools)
    file = directory / "model.safetensors"
    before = file.stat()
    file.write_bytes(file.read_bytes())
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with opened(directory, spools) as model:
        assert answer(model)[0] == 0


@pytest.mark.parametrize("place", [0, 9, 300, -300])
def test_a_flipped_bit_is_never_trusted(directory: Path, spools: Spools, place: int) -> None:
    tokens = spooled(directory, spools)
    file = spools.path(directory)
    content = bytearray(file.read_bytes())
    content[place] ^= 4
    file.write_bytes(content)
    with opened(directory, spools) as model:
        cached, again = answer(model)
    assert again == tokens
    assert cached < CACHED
    assert not file.exists()


@pytest.mark.parametrize("kept", [0, 5, 200, -1])
def test_what_was_cut_short_is_dropped(
    directory: Path, spools: Spools, kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = spooled(directory, spools)
    file = spools.path(directory)
    file.write_bytes(file.read_bytes()[:kept])
    with caplog.at_level("WARNING"), opened(directory, spools) as model:
        assert answer(model)[1] == tokens
    assert "kv_spool_dropped" in caplog.text
    assert not file.exists()


def test_the_limit_keeps_what_was_used_last_from_its_beginning(directory: Path, spools: Spools) -> None:
    other = tuple(range(60, 2, -1))
    with opened(directory, spools) as model:
        answer(model, other)
        answer(model)
        save(model)
    whole = spools.path(directory).stat().st_size
    with opened(directory, spools, kv_spool=whole * 2 // 5) as model:
        save(model)
    assert whole // 5 < spools.path(directory).stat().st_size <= whole * 2 // 5
    with opened(directory, spools) as model:
        assert answer(model, other)[0] == 0
        assert 0 < answer(model)[0] < CACHED


def test_a_smaller_pool_takes_what_it_has_room_for(directory: Path, spools: Spools) -> None:
    tokens = spooled(directory, spools)
    with opened(directory, spools) as model:
        size = model.loaded.stages[0].kv_bytes // 12  # of 12 blocks
    with opened(directory, spools, kv_memory=5 * size, slots=1) as model:
        assert answer(model) == (CACHED, tokens)


def test_whoever_waits_stops_it_and_what_was_written_counts(directory: Path, spools: Spools) -> None:
    with opened(directory, spools) as model:
        answer(model)
        calls = iter([False, True])
        spool_of(model).save(lambda: next(calls))
    with opened(directory, spools) as model:
        assert answer(model)[0] == 16


def test_one_that_is_stopped_at_once_leaves_what_was_there(directory: Path, spools: Spools) -> None:
    tokens = spooled(directory, spools)
    with opened(directory, spools) as model:
        spool_of(model).save(lambda: True)
    assert list(spools.path(directory).parent.iterdir()) == [spools.path(directory)]
    with opened(directory, spools) as model:
        assert answer(model) == (CACHED, tokens)


def test_a_disk_that_takes_nothing_harms_nobody(
    directory: Path, spools: Spools, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = spooled(directory, spools)
    file = spools.path(directory)
    kept = file.read_bytes()
    with caplog.at_level("WARNING"), opened(directory, spools) as model:
        file.with_suffix(".new").mkdir()
        save(model)
    assert "kv_spool_not_saved" in caplog.text
    assert file.read_bytes() == kept
    with opened(directory, spools) as model:
        assert answer(model) == (CACHED, tokens)


def test_no_limit_means_no_file(directory: Path, spools: Spools) -> None:
    with opened(directory, spools, kv_spool=0) as model:
        assert model.spool is None
