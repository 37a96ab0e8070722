"""Checks the grammars of requests before they reach an engine."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

import msgspec

from llmd.api.decoding import prepared
from llmd.api.errors import GrammarError
from llmd.chat.grammars.check_messages import Checked, CheckJob
from llmd.process.worker import Worker, WorkerLostError

WORKER = "llmd.chat.grammars.check_worker"
TIME_LIMIT_S = 2.0
MEMORY_LIMIT_BYTES = 1 << 30
KEPT = 256
WAITING_THREADS = 8
MAX_REPLY_BYTES = 1 << 20


class GrammarChecker:
    """Compiles grammars in one process with time and memory limits, started by the first check. Thread-safe.

    Checks run one at a time. Results are cached, since an application sends the same few grammars repeatedly.
    Wait for a check in ``threads``: in a shared thread pool, many slow grammars would block unrelated work.
    """

    def __init__(
        self, *, time_limit_s: float = TIME_LIMIT_S, memory_limit_bytes: int = MEMORY_LIMIT_BYTES
    ) -> None:
        self._time_limit_s = time_limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._lock = threading.Lock()
        self._process: Worker | None = None
        self._known: OrderedDict[CheckJob, Checked] = OrderedDict()
        self.threads = ThreadPoolExecutor(WAITING_THREADS, "grammars")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process and the threads."""
        self.threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._end()

    def check(self, job: CheckJob) -> None:
        """Compile a grammar. Blocks for up to the time limit; from asyncio, call it in a thread.

        Raises:
            GrammarError: it is malformed, too complex, or has a feature that cannot be enforced.
        """
        checked = self._known.get(job) or self._find(job)  # a cached result does not wait for the lock
        if checked.message:
            raise GrammarError(checked.message, hint=checked.hint)

    def _find(self, job: CheckJob) -> Checked:
        with self._lock:
            checked = self._known.get(job) or self._ask(job)
            self._known[job] = checked
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
            return checked

    def _ask(self, job: CheckJob) -> Checked:
        try:
            if self._process is None or not self._process.is_alive:
                self._end()
                self._process = Worker(
                    WORKER, memory_bytes=self._memory_limit_bytes, max_reply_bytes=MAX_REPLY_BYTES
                )
            reply = self._process.ask(msgspec.msgpack.encode(job), limit_s=self._time_limit_s)
            return msgspec.msgpack.decode(reply, type=prepared(Checked))
        except TimeoutError as exc:
            self._end()
            raise GrammarError(
                f"the grammar was not compiled within {self._time_limit_s:g} s", hint="send a simpler one"
            ) from exc
        except WorkerLostError as exc:
            self._end()
            raise GrammarError(
                "the grammar needs more memory than is allowed", hint="send a simpler one"
            ) from exc
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None
