"""Measures llmd's overhead around the device: ``python -m bench.loop_cost``.

On a null device with a fixed step time and meaningless tokens:

* *idle*: how long the device is idle between two steps, as a share of a step (engine time not hidden by the
device).
  Measured in this process, like `llmd bench engine`.
* *arrives*: tokens that clients of a daemon receive over HTTP (a Unix socket), as a share of those that the
device
  generates, with the CPU time of front, engine and client. The client reads raw sockets in this process.
"""

from __future__ import annotations

import json
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Sequence

from bench.null_daemon import NullDaemon, null_daemon
from bench.servers import cpu_s, family
from llmd.api.samplers import SamplingParams
from llmd.benchmark.engine_loop import measure_loop

STEP_MS = 10.0
STREAMS = (16, 128)
KINDS = {"greedy": (0.0, 1.0), "temperature + top-p": (0.8, 0.9)}
ROUNDS, STEPS = 5, 200
ANSWER_LEN = 500
Address = str | tuple[str, int]
"""A Unix socket's path, or host and port."""


def main() -> None:
    """Print one JSON object."""
    rows = [
        {"streams": streams, "sampling": kind, **measure(streams, *params)}
        for streams in STREAMS
        for kind, params in KINDS.items()
    ]
    json.dump({"step_ms": STEP_MS, "rows": rows}, sys.stdout, indent=2)


def measure(streams: int, temperature: float, top_p: float) -> dict[str, object]:
    """Measure both for one load."""
    sampling = SamplingParams(0, temperature, top_p=top_p)
    costs = [measure_loop(streams, sampling, STEP_MS / 1e3, STEPS) for _ in range(ROUNDS)]
    idle = [cost.idle_share for cost in costs if cost.idle_share is not None]
    with null_daemon("guide", slots=streams, step_ms=STEP_MS) as daemon:
        arrives = [over_http(daemon, streams, temperature, top_p) for _ in range(ROUNDS)]
    middle = sorted(arrives, key=lambda one: one["arrives"])[ROUNDS // 2]
    return {"idle": spread(idle), "arrives": spread([one["arrives"] for one in arrives]), "cpu": middle}


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the range."""
    return {
        "median": round(statistics.median(values), 4),
        "least": round(min(values), 4),
        "most": round(max(values), 4),
    }


def over_http(daemon: NullDaemon, streams: int, temperature: float, top_p: float) -> dict[str, float]:
    """Measure the share of generated tokens that arrive, and the CPU seconds per second of each process."""
    request = http_request(temperature, top_p)
    processes = {"front": [daemon.pid], "engine": family(daemon.pid)[1:]}
    used = {name: sum(map(cpu_s, pids)) for name, pids in processes.items()}
    own = time.process_time()
    elapsed_s = answer_all(str(daemon.socket), request, streams)
    cpu = {f"{name}_cpu": sum(map(cpu_s, pids)) - used[name] for name, pids in processes.items()}
    cpu["client_cpu"] = time.process_time() - own
    shares = {name: round(value / elapsed_s, 3) for name, value in cpu.items()}
    return {"arrives": ANSWER_LEN * STEP_MS / 1e3 / elapsed_s} | shares


def answer_all(address: Address, request: bytes, streams: int) -> float:
    """Return the seconds from the first byte of the first answer to the end of the last answer."""
    began, left = 0.0, streams
    with selectors.DefaultSelector() as selector:
        for _ in range(streams):
            one = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)
            one.connect(address)
            one.sendall(request)
            selector.register(one, selectors.EVENT_READ)
        while left:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                read = key.fileobj.recv(1 << 16)
                began = began or time.perf_counter()
                if not read or b"[DONE]" in read:
                    left -= 1
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
    return time.perf_counter() - began


def http_request(temperature: float, top_p: float, top_k: int = 0) -> bytes:
    """Return a request for a streamed completion of `ANSWER_LEN` tokens."""
    fields = {
        "prompt": "How do I stop a model?",
        "max_tokens": ANSWER_LEN,
        "ignore_eos": True,
        "stream": True,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
        "seed": 1,
    }
    body = json.dumps(fields).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


if __name__ == "__main__":
    main()
