"""The process of a device does what is asked of it, and an engine with such a device loses nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from llmd.api import DeviceError, DeviceLostError
from llmd.api.device import Device
from llmd.api.kernel_use import KernelUse
from llmd.api.messages import Load, StageSpec
from llmd.api.results import Failed
from llmd.api.step import Step, Ticket
from llmd.api.transport import Link
from llmd.builtin.architectures.plugin import llmd_architectures
from llmd.engine.loading import LoadedModel, load_model
from llmd.engine.steps import step_limit
from llmd.remote import connection
from llmd.remote.array_frames import ArrayFrame, ArrayFrameReader
from llmd.remote.device import RemoteDevice
from llmd.remote.messages import (
    ApplyMasks,
    DeviceStatus,
    GetStatus,
    ReleaseTicket,
    Reply,
    SubmitStep,
    WaitForStep,
)
from llmd.remote.serving import DeviceServer, ServedStage
from tests.daemon.remote.conftest import OpenApart
from tests.plugins.transport.shared_links import linked
from tests.serving.apart import process_of
from tests.serving.failing_device import FailingDevice
from tests.serving.machine import machine_of
from tests.serving.mixed_requests import NUM_STREAMS, Answers, answers
from tests.serving.model import write_model

ARCHITECTURES = {name: one for one in llmd_architectures() for name in one.names}
PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def undisturbed(directory: Path) -> Answers:
    message = Load(str(directory), device="a", slots=8, kv_dtype="f32")
    with closing(load_model(message, ARCHITECTURES, FailingDevice, lambda _: None)) as model:
        found = answers(model.core)
    assert len(found) == NUM_STREAMS
    return found


@pytest.fixture(params=["first", "last"])
def divided(
    request: pytest.FixtureRequest, directory: Path, open_here: OpenApart
) -> Iterator[tuple[LoadedModel, RemoteDevice]]:
    """A model with one of its two stages in a process of its own."""
    apart, here = open_here(), FailingDevice("a")
    devices: dict[str, Device] = {"reference": apart, "a": here}
    names = ("reference", "a") if request.param == "first" else ("a", "reference")
    stages = tuple(StageSpec(name, str(layer), str(layer)) for layer, name in enumerate(names))
    message = Load(str(directory), device="a", slots=8, kv_dtype="f32", stages=stages)
    left = machine_of([device.info for device in devices.values()])
    with closing(
        load_model(message, ARCHITECTURES, devices.__getitem__, lambda _: None, devices=left)
    ) as model:
        yield model, apart


@pytest.mark.timeout(120)
def test_a_divided_model_answers_every_kind_of_request(
    divided: tuple[LoadedModel, RemoteDevice], undisturbed: Answers
) -> None:
    assert answers(divided[0].core) == undisturbed


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_process_that_dies_or_hangs_under_load_loses_nothing(
    divided: tuple[LoadedModel, RemoteDevice],
    undisturbed: Answers,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, device = divided
    for name in ("CALL_LIMIT_S", "GRACE_S", "END_LIMIT_S"):
        monkeypatch.setattr(connection, name, 2.0 if number == signal.SIGSTOP else 20.0)
    monkeypatch.setattr(step_limit, "LEAST_S", 30.0)
    steps, lost = 0, list[str]()

    def disturb() -> None:
        nonlocal steps
        steps += 1
        if steps == 10:
            os.kill(process_of(device), number)

    def recover(error: DeviceError) -> tuple[Failed, ...]:
        assert isinstance(error, DeviceLostError)
        lost.extend(error.devices)
        return model.recover(error)[1]

    assert answers(model.core, recover, disturb) == undisturbed
    assert lost == ["reference"]


class BrokenStage:
    """Fails to submit or to apply masks, and notes which tickets are released."""

    def __init__(self) -> None:
        self.is_full = True
        self.released: list[Ticket] = []

    def submit(self, *_: object) -> Ticket:
        if self.is_full:
            raise DeviceError("no queue")
        return Ticket(8)

    def apply_masks(self, *_: object) -> None:
        raise DeviceError("no masks")

    def release(self, ticket: Ticket) -> None:
        self.released.append(ticket)


def test_a_step_that_was_not_submitted_fails_where_it_is_waited_for() -> None:
    stage, none = BrokenStage(), np.zeros(0, np.int32)
    served = ServedStage(stage)  # type: ignore[arg-type]
    submit = SubmitStep(1, 5, Step(none, none, none, (), none), None, None)
    assert served.answer(submit) is None
    with pytest.raises(DeviceError, match="no queue"):
        served.answer(WaitForStep(1, 5, 1.0))
    with pytest.raises(ValueError, match="ticket 5 is not in flight"):
        served.answer(WaitForStep(1, 5, 1.0))
    served.answer(submit)
    served.answer(ReleaseTicket(1, 5))
    assert stage.released == [], "the stage has no such ticket"
    stage.is_full = False
    served.answer(submit)
    served.answer(ApplyMasks(1, 5, np.zeros((1, 1), np.uint32)))
    with pytest.raises(DeviceError, match="no masks"):
        served.answer(WaitForStep(1, 5, 1.0))
    assert stage.released == [Ticket(8)]


def ask(link: Link, request: object) -> Reply[DeviceStatus]:
    frame = ArrayFrame(request)
    frame.write_to(link.reserve(frame.num_bytes, PATIENCE_S))
    link.commit(frame.num_bytes)
    with link.receive(PATIENCE_S) as data:
        return ArrayFrameReader[Reply[DeviceStatus]](Reply[DeviceStatus]).read(data)


class SpillingCard(FailingDevice):
    """Has moved 5 bytes of its memory."""

    def spilled_bytes(self) -> int:
        return 5


def test_replies_say_the_status_at_times() -> None:
    device = SpillingCard("a")
    device.room = lambda: 17
    with linked() as (near, far):
        server = DeviceServer(device, far)
        thread = threading.Thread(target=server.serve)
        thread.start()
        near.receive(PATIENCE_S).release()  # what the device is
        first, second = (ask(near, GetStatus()) for _ in range(2))
        near.close()
        thread.join(PATIENCE_S)
    assert not thread.is_alive(), "it ends when the link is closed"
    assert first.value == first.status == second.value == DeviceStatus(17, 5)
    assert second.status in (None, first.status)


class NamingStage:
    """Names its kernels."""

    def kernels(self) -> KernelUse:
        return KernelUse(("graphs",))


def test_stages_that_name_their_kernels_are_in_the_status() -> None:
    with linked() as (_, far):
        server = DeviceServer(FailingDevice("a"), far)
        server._stages = {1: ServedStage(NamingStage()), 2: ServedStage(object())}  # type: ignore[arg-type]
        assert server._status().kernels == {1: KernelUse(("graphs",))}
