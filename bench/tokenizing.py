"""Measures how long tokenizing a long prompt blocks the daemon's event loop: ``python -m bench.tokenizing``.

A client requests `/health` back to back on one connection; its longest wait bounds how long the loop was
blocked. Rounds that tokenize a prompt of 20,000 tokens alternate with rounds without one, which show the
machine's own delays. The prompt is longer than the model's window, so that it is only tokenized and then
refused.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

from tokenizers import Tokenizer

from bench.startup import daemon, environment_below
from llmd.builtin.guide import guide_directory

TOKENS = 20_000
ROUNDS = 21
ADDRESS = ("127.0.0.1", 18642)
SENTENCE = "How do I see which devices the daemon has found, and how fast is each of them? "


def main() -> None:
    """Print one JSON object; times are in milliseconds."""
    body = request_body()
    with tempfile.TemporaryDirectory(prefix="llmd-tokenizing-") as folder:
        environment = environment_below(Path(folder)) | {"LLMD_ADDR": "{}:{}".format(*ADDRESS)}
        with daemon(environment, "guide"):
            time.sleep(10)  # devices are benchmarked after the start
            busy, quiet, whole = zip(*(one_round(body) for _ in range(ROUNDS)), strict=True)
    waits = {"while_tokenizing": busy, "without": quiet, "until_refused": whole}
    print(
        json.dumps(
            {"tokens": TOKENS, "bytes": len(body)} | {k: summary(v) for k, v in waits.items()}, indent=2
        )
    )


def request_body() -> bytes:
    """Return a completion request of at least ``TOKENS`` tokens."""
    tokenizer = Tokenizer.from_file(str(guide_directory() / "tokenizer.json"))
    prompt = SENTENCE * (TOKENS // len(tokenizer.encode(SENTENCE).ids) + 1)
    return json.dumps({"model": "guide", "prompt": prompt, "max_tokens": 1}).encode()


def one_round(body: bytes) -> tuple[float, float, float]:
    """Return the longest wait during tokenizing, the longest in an equal time without it, and that time."""
    began = time.perf_counter()
    asking = threading.Thread(target=ask, args=(body,))
    asking.start()
    busy = longest_wait(asking.is_alive)
    end = time.perf_counter()
    took = end - began
    return busy, longest_wait(lambda: time.perf_counter() < end + took), 1e3 * took


def ask(body: bytes) -> None:
    """Send the prompt and check that it is refused as too long."""
    connection = HTTPConnection(*ADDRESS)
    connection.request("POST", "/v1/completions", body, {"content-type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    if response.status != 400:
        raise RuntimeError(f"the prompt was not refused: {response.status} {answer[:200]!r}")


def longest_wait(goes_on: Callable[[], bool]) -> float:
    """Return the longest wait for `/health` in milliseconds, while ``goes_on`` returns true."""
    connection, waits = HTTPConnection(*ADDRESS), [0.0]
    connection.connect()
    while goes_on():
        began = time.perf_counter()
        connection.request("GET", "/health")
        connection.getresponse().read()
        waits.append(1e3 * (time.perf_counter() - began))
    connection.close()
    return max(waits)


def summary(values: tuple[float, ...]) -> dict[str, float]:
    """Return the median and the maximum."""
    return {"median_ms": round(statistics.median(values), 2), "max_ms": round(max(values), 2)}


if __name__ == "__main__":
    main()
