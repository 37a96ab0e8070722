"""An environment that holds nothing but our wheels answers a chat, on the devices that it has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.environments import Environment

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(300)]


@contextmanager
def daemon(environment: Environment) -> Iterator[None]:
    """A daemon in the background of an environment, on its user's socket alone."""
    environment.run(
        "llmd", "serve", "guide", "--detach", "--addr", f"unix:{environment.prefix / 'llmd.sock'}"
    )
    try:
        yield
    finally:
        environment.run("llmd", "stop", "--daemon", "--host", f"unix:{environment.prefix / 'llmd.sock'}")


def devices(environment: Environment) -> list[str]:
    socket = f"unix:{environment.prefix / 'llmd.sock'}"
    (model,) = json.loads(environment.run("llmd", "ps", "--json", "--host", socket))["models"]
    return [stage["device"] for stage in model["loaded"]["stages"]]


def answer(environment: Environment) -> str:
    socket = f"unix:{environment.prefix / 'llmd.sock'}"
    question = "How do I see my devices?"
    return environment.run("llmd", "run", "guide", question, "--temp", "0", "-n", "24", "--host", socket)


def test_wheels_of_all_distributions_answer_on_the_cpu_backend(installed: Environment) -> None:
    with daemon(installed):
        assert answer(installed).strip()
        assert devices(installed) == ["cpu"]


def test_the_daemon_alone_answers_on_the_reference_backend(daemon_alone: Environment) -> None:
    with daemon(daemon_alone):
        assert answer(daemon_alone).strip()
        assert devices(daemon_alone) == ["reference"]
