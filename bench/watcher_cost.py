"""Measures what a client of ``GET /llmd/events`` costs: ``python -m bench.watcher_cost``.

A daemon on a null device answers 16 streams, in turns without and with a watcher, as `llmd tui` is one. The
result is the processor time that front and engine use for one step, in milliseconds. Other programs may use
the machine: therefore processor time, and turns within one daemon.
"""

from __future__ import annotations

import json
import socket
import statistics
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import loop_cost
from bench.loop_cost import answer_all, http_request
from bench.machine import describe
from bench.null_daemon import NullDaemon, null_daemon
from bench.servers import family

STREAMS = 16
STEP_MS = 10.0
ROUNDS = 20
EVENTS = b"GET /llmd/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


def main() -> None:
    """Print one JSON object."""
    request = http_request(0.8, 0.9)
    rows: dict[str, list[dict[str, float]]] = {"alone": [], "watched": []}
    with null_daemon("guide", slots=STREAMS, step_ms=STEP_MS) as daemon:
        processes = {"front": daemon.pid, "engine": family(daemon.pid)[1]}
        answer_all(str(daemon.socket), request, STREAMS)  # the first answers of an engine take longer
        for number in range(2 * ROUNDS):
            rows["alone" if number % 2 == 0 else "watched"].append(
                one_round(daemon, processes, request, watched=number % 2 == 1)
            )
    medians = {
        kind: {name: round(statistics.median(one[name] for one in of), 4) for name in processes}
        for kind, of in rows.items()
    }
    cost = {name: round(medians["watched"][name] / medians["alone"][name] - 1, 4) for name in processes}
    json.dump(
        {"machine": describe(), "ms_per_step": medians, "cost": cost, "rounds": rows}, sys.stdout, indent=1
    )


def one_round(
    daemon: NullDaemon, processes: dict[str, int], request: bytes, *, watched: bool
) -> dict[str, float]:
    """Return the milliseconds of processor time for one step, by process."""
    used = {name: processor_ms(pid) for name, pid in processes.items()}
    if watched:
        with watcher(daemon.socket):
            answer_all(str(daemon.socket), request, STREAMS)
    else:
        answer_all(str(daemon.socket), request, STREAMS)
    return {name: (processor_ms(pid) - used[name]) / loop_cost.ANSWER_LEN for name, pid in processes.items()}


@contextmanager
def watcher(address: Path) -> Iterator[None]:
    """Read events until the block ends."""
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(str(address))
        one.sendall(EVENTS)
        assert b" 200 " in one.recv(1 << 16)

        def read() -> None:
            while one.recv(1 << 16):
                pass

        reader = threading.Thread(target=read, name="watcher")
        reader.start()
        try:
            yield
        finally:
            one.shutdown(socket.SHUT_RDWR)
            reader.join()


def processor_ms(pid: int) -> float:
    """Return the processor time of the threads of a process. Clock ticks of 10 ms would be too coarse."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6


if __name__ == "__main__":
    main()
