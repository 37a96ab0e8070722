"""The loop of an engine process in a thread, on devices that can be lost."""

from __future__ import annotations

import gc
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import msgspec
import pytest

from llmd.api import Device, KVDtype
from llmd.api.messages import FromEngine, Load, Loading, Replanned, StageSpec
from llmd.api.results import Failed, Output
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.process import Loader, serve
from llmd.process.frames import FrameDecoder, encode_frame
from tests.serving.machine import machine_of
from tests.serving.mixed_requests import NUM_STREAMS, VOCABULARY, Answers, mixed_requests


class ThreadedEngine:
    """An engine process as a thread, on devices that can be lost."""

    def __init__(self, *devices: Device) -> None:
        by_name = {device.info.name: device for device in devices}
        architectures = {name: one for one in llmd_architectures() for name in one.names}

        def loader(message: Load, report: Callable[[Loading], None]) -> LoadedModel:
            usable = machine_of([device.info for device in devices])
            return load_model(message, architectures, by_name.__getitem__, report, devices=usable)

        self.socket, theirs = socket.socketpair()
        self._decoder: FrameDecoder[FromEngine] = FrameDecoder(cast("type[FromEngine]", FromEngine))
        self._serving = ThreadPoolExecutor(1, "engine")
        self._status = self._serving.submit(self._serve, theirs, loader)

    @staticmethod
    def _serve(theirs: socket.socket, loader: Loader) -> int:
        with theirs:
            return serve(theirs, loader)

    def send(self, *messages: msgspec.Struct) -> None:
        self.socket.sendall(b"".join(encode_frame(message) for message in messages))

    def messages(self) -> Iterator[FromEngine]:
        """Yield messages other than `Loading` until the engine ends."""
        while received := self.socket.recv(65536):
            yield from (one for one in self._decoder.feed(received) if not isinstance(one, Loading))

    def end(self) -> int:
        self.socket.close()
        self._serving.shutdown()
        gc.unfreeze()  # `serve` freezes the objects of its process
        return self._status.result()


def answers_of(
    engine: ThreadedEngine,
    directory: Path,
    device: str,
    *,
    stages: tuple[StageSpec, ...] = (),
    kv_dtype: KVDtype = "f32",
    most: int = NUM_STREAMS,
) -> tuple[Answers, list[Replanned]]:
    """Send the first ``most`` requests; return what they get, and the moves of the model."""
    requests = mixed_requests()[:most]
    load = Load(str(directory), device=device, stages=stages, slots=8, kv_dtype=kv_dtype)
    engine.send(load, VOCABULARY, *requests)
    found: Answers = defaultdict(list)
    moves: list[Replanned] = []
    running = {one.request_id for one in requests}
    for message in engine.messages():
        match message:
            case Output():
                for token in message.tokens:
                    found[token.request_id].append(token)
                    running -= {token.request_id} if token.finish else set()
                for beams in message.beams:
                    found[beams.request_id].append(beams)
                    running.remove(beams.request_id)
            case Replanned():
                moves.append(message)
            case Failed():
                pytest.fail(message.message)
        if not running:
            break
    return found, moves
