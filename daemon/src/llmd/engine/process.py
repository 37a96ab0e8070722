"""The loop of the engine process."""

from __future__ import annotations

import gc
import logging
import socket
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import cast

import msgspec

from llmd.api.errors import DeviceLostError, DeviceMemoryError, LlmdError, RequestError
from llmd.api.messages import (
    Cancel,
    EmbedText,
    FromFront,
    Load,
    Loading,
    PackedVocabulary,
    Replanned,
    Shutdown,
    Submit,
)
from llmd.api.out_of_memory import memory_errors
from llmd.api.reports import GetBlocks, GetReport
from llmd.api.results import Embedded, Failed, Output
from llmd.engine.core import EngineCore
from llmd.engine.embedding_core import EmbeddingCore
from llmd.engine.failures import failure
from llmd.engine.loading import LoadedModel
from llmd.process.channel import Channel

log = logging.getLogger(__name__)

SPOOL_LIMIT_S = 20.0
"""Time that an engine has to write its prefix cache at shutdown."""

Runner = EngineCore | EmbeddingCore
Loader = Callable[[Load, Callable[[Loading], None]], LoadedModel]


def serve(sock: socket.socket, loader: Loader) -> int:
    """Load the model that the first message names,
    then run until the daemon closes ``sock`` or sends `Shutdown`.

    Returns:
        The exit status of the process.
    """
    try:
        return _serve(Channel(sock, cast("type[FromFront]", FromFront)), loader)
    except ConnectionError:
        log.info("front_gone")
        return 0


def _serve(channel: Channel[FromFront], loader: Loader) -> int:
    first = channel.receive_first()
    if not isinstance(first, Load):
        log.error("engine_without_load", extra={"first_message": type(first).__name__})
        return 1
    try:
        with memory_errors():
            model = loader(first, channel.send)
    except LlmdError as error:
        channel.send(failure(None, error))
        return 1
    with closing(model):
        channel.send(model.loaded)
        gc.freeze()  # collections skip the objects that stay
        gc.enable()
        end = _run(channel, model)
        if end is None:
            return 1
        if end.spool and model.spool is not None:
            deadline = time.monotonic() + SPOOL_LIMIT_S
            model.spool.save(lambda: time.monotonic() > deadline or _is_interrupted(channel))
    return 0


def _is_interrupted(channel: Channel[FromFront]) -> bool:
    """Return whether the front has sent a message or disconnected."""
    return bool(channel.receive(wait=False)) or channel.closed


def _run(channel: Channel[FromFront], model: LoadedModel) -> Shutdown | None:
    """Run until the end; return the `Shutdown` message, or a default one if the front disconnected.

    None: a device failed, and the model cannot run without it.
    """
    core = model.runner
    while True:
        messages = channel.receive(wait=not core.busy)
        ends = [message for message in messages if isinstance(message, Shutdown)]
        if ends or channel.closed:
            return ends[-1] if ends else Shutdown()
        for message in messages:
            _handle(channel, model, message)
        if core.busy:
            try:
                output = core.step()
            except (DeviceLostError, DeviceMemoryError) as error:
                if not _place_again(channel, partial(model.recover, error)):
                    return None
                continue
            if _has_news(output):
                channel.send(output)
            if not _place_again(channel, model.relieve):
                return None


def _has_news(output: Output | Embedded) -> bool:
    return any(value not in ((), None) for value in msgspec.structs.astuple(output))


def _place_again(
    channel: Channel[FromFront], place: Callable[[], tuple[Replanned, tuple[Failed, ...]] | None]
) -> bool:
    """Place the model again, if needed; return False if that is impossible, which ends all requests."""
    try:
        placed = place()
    except LlmdError as refusal:
        channel.send(failure(None, refusal))
        return False
    if placed:
        replanned, failed = placed
        for message in (replanned, *failed):
            channel.send(message)
    return True


def _handle(channel: Channel[FromFront], model: LoadedModel, message: FromFront) -> None:
    core = model.runner
    match message:
        case Submit() | EmbedText():
            try:
                _submit(core, message)
            except LlmdError as error:
                channel.send(failure(message.request_id, error))
        case PackedVocabulary():
            if isinstance(core, EngineCore):
                core.set_vocabulary(message)
        case Cancel(request_id=request_id):
            core.cancel(request_id)
        case GetReport(sequences=sequences):
            channel.send(model.report(sequences=sequences))
        case GetBlocks():
            channel.send(core.blocks())
        case Load() | Shutdown():
            log.warning("message_out_of_turn", extra={"message_type": type(message).__name__})


def _submit(core: Runner, message: Submit | EmbedText) -> None:
    if isinstance(core, EmbeddingCore):
        if not isinstance(message, EmbedText):
            raise _wrong_model("the model embeds texts and cannot generate")
        core.submit(message)
    else:
        if not isinstance(message, Submit):
            raise _wrong_model("the model generates and cannot embed texts")
        core.submit(message)


def _wrong_model(what: str) -> RequestError:
    return RequestError(what, param="model", hint="send the request to a model that can do this")
