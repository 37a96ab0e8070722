"""``kill -9`` of an engine with adapters: each answer goes on with its adapter."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.chaos.test_engine_killed import KillAt, OnPiece, read_stream
from tests.serving.adapters import use_adapters, write_adapter
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

NAMES = ("formal", "sql", MODEL)


def read_each(daemon: RunningDaemon, on_piece: OnPiece) -> list[str]:
    """The texts of two streams of each adapter and of the model, all at once."""
    models = [*NAMES, *NAMES]
    with ThreadPoolExecutor(len(models)) as pool, daemon.client() as client:
        streams = [pool.submit(read_stream, client, 4, on_piece, model=name) for name in models]
        return [stream.result()[0] for stream in streams]


def test_streams_go_on_with_their_adapters(tmp_path: Path, probes: Path) -> None:
    directories = directories_below(tmp_path, cache=probes)
    model = write_model(directories.models / MODEL)
    use_adapters(
        directories.config,
        MODEL,
        [write_adapter(tmp_path / name, model, seed=len(name)) for name in NAMES[:2]],
    )
    with running_daemon(directories, slots=4) as daemon:
        undisturbed = read_each(daemon, lambda: None)
        assert len(set(undisturbed)) == len(NAMES)
        killer = KillAt(daemon, 60)
        assert read_each(daemon, killer) == undisturbed
        assert len(killer.killed) == 1
