"""In a short soak the real daemon answers every kind of request and is idle at the end."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from bench.soak import Plan, soak
from bench.soak_clients import Clients, text_of
from bench.soak_levels import Use, use
from bench.soak_mix import MIX, Asked
from bench.soak_report import report
from tests.serving.home import make_home

SECONDS, CLIENTS = 2.0, 24


@pytest.mark.exhaustive
@pytest.mark.timeout(150)
def test_every_request_ends_as_it_should_and_nothing_is_held_afterwards(tmp_path: Path) -> None:
    home = make_home(tmp_path, tmp_path / "cache")
    found = soak(home, Plan(SECONDS, CLIENTS, every_s=0.05, seed=0, fill=4))
    assert found.faults == []
    assert sum(found.ended.values()) > 0
    assert found.filled >= 4
    last = found.last.metrics
    assert (last["requests_running"], last["requests_waiting"], last["kv_blocks_used"]) == (0, 0, 0)
    assert (found.last.front.processes, found.last.engine.processes) == (1, 1)
    assert found.last.front.descriptors < found.samples[0].front.descriptors
    assert "KV blocks in use" in report(found, {}, CLIENTS)


def test_shares_are_of_a_hundred() -> None:
    assert sum(kind.share for kind in MIX.values()) == 100


@pytest.mark.parametrize("name", [name for name, kind in MIX.items() if "again" in name])
def test_requests_that_come_again_are_named_by_all_that_they_ask(name: str) -> None:
    random, seen = Random(0), dict[str, Asked]()
    for _ in range(300):
        asked = MIX[name].make(random)
        assert seen.setdefault(asked.name, asked) == asked
    assert len(seen) > 10


def test_an_answer_that_differs_from_the_first_is_a_fault() -> None:
    clients = Clients(Path("/nowhere"), "guide", MIX, 0)
    asked = Asked("/v1/completions", {}, name="seeded 1")
    streams = [b'data: {"choices":[{"text":"%b"}]}\n\ndata: [DONE]\n\n' % text for text in (b"a", b"a", b"b")]
    assert [clients.judge(asked, stream) for stream in streams] == ["", "", "seeded 1 got 'b' after 'a'"]
    assert clients.compared == 2


def test_a_stream_that_is_cut_is_a_fault() -> None:
    clients = Clients(Path("/nowhere"), "guide", MIX, 0)
    assert "ends with" in clients.judge(Asked("/v1/completions", {}), b'data: {"choices":[]}\n\n')


def test_the_text_of_a_stream_is_that_of_its_choices() -> None:
    stream = (
        b'data: {"choices":[{"text":"a"}]}\n\n: ping\n\ndata: {"choices":[{"text":"b"}]}\n\ndata: [DONE]\n\n'
    )
    assert text_of(stream) == "ab"


def test_processes_are_added_up_and_those_that_have_gone_take_nothing() -> None:
    own = use([os.getpid()])
    assert own.resident > own.anonymous > 0
    assert own.descriptors > 0
    assert use([]) == use([1 << 30]) == Use()
    assert use([os.getpid(), os.getpid()]).processes == 2
