"""Compares a format of llmd with a type of llama.cpp: speed, starts, memory and quality."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec import convert

from bench.cpu_profiles import KV_TYPES, Profile
from bench.cpu_quality import (
    Divergence,
    Logits,
    Text,
    asked_for,
    compare,
    guide_texts,
    matrix_bytes,
    random_texts,
    scored_logits,
)
from bench.cpu_quality_report import Quality
from bench.cpu_report import BesideWork, Comparison
from bench.cpu_rounds import Cases, Rounds
from bench.cpu_sides import (
    Room,
    Start,
    busy_process,
    drop_cached,
    drop_packed,
    kept_by_dense,
    open_llmd,
    open_peer,
    open_probe,
    started,
)
from bench.peer import run_peer
from bench.quiet import QuietRounds
from bench.reads import Reads
from bench.shapes import Shape
from bench.weight_errors import gguf_of, measure_errors
from bench.worker import Side
from llmd.api import KVDtype
from llmd.builtin.guide import guide_directory

PLAIN = "BF16"
TEXT_LEN = 256
"""At least the length of any scored text."""


class Pair:
    """A format of llmd, the checkpoint's own or quantised, and a type of llama.cpp.

    ``cache`` is llmd's cache folder for packed weights.
    """

    def __init__(
        self, shape: Shape, profile: Profile, quant: str, kind: str, directory: Path, cache: Path
    ) -> None:
        self._shape, self._profile = shape, profile
        self._quant, self._kind = quant, kind
        self._directory, self._cache = directory, cache
        self._file = gguf_of(directory, kind)
        facts = run_peer("bench.gguf_quality", str(directory), str(self._file))
        self._peer: dict[str, Any] = json.loads(facts)
        theirs = (int(self._peer["read_bytes"]), int(self._peer["expert_bytes"]))
        self._reads = {
            name: Reads(*found, shape.mixture)
            for name, found in (("llmd", matrix_bytes(directory, quant)), ("llama.cpp", theirs))
        }

    def best(self) -> tuple[Comparison, dict[str, Divergence]]:
        """Measure each side at its best: speed, starts, memory, and divergence from the unquantised model."""
        quiet, builds, texts = QuietRounds(), self._profile.builds, random_texts(self._shape.vocab)
        first = self._starts("first", builds[:1], None, quiet)
        with self._opened(builds, None) as sides:
            rounds, peaks = self._measured(sides, self._profile, quiet)
            logits = {f"llmd {self._quant}": sides[0], f"llama.cpp {self._kind}": sides[1]}
            scored = {name: scored_logits(side, texts) for name, side in logits.items()}
        starts = first | self._starts("again", builds, None, quiet)
        found = Comparison(None, rounds, peaks, self._reads, starts, quiet.tally)
        room = Room.for_texts(TEXT_LEN, self._shape.kv_token_bytes, self._shape.state_bytes)
        return found, self._divergences(self._directory, texts, scored, room)

    def alone(self, isa: str) -> Comparison:
        """Measure both sides with one instruction set, without long sequences."""
        quiet = QuietRounds()
        with self._opened([isa], isa) as sides:
            rounds, peaks = self._measured(sides, self._profile.without_depth(), quiet)
        starts = self._starts("again", [isa], isa, quiet)
        return Comparison(isa, rounds, peaks, self._reads, starts, quiet.tally)

    def beside_work(self) -> BesideWork:
        """Measure one sequence while another process keeps a CPU busy, with both wait policies of the peer's
        threads.
        """
        profile, quiet = self._profile.beside_work(), QuietRounds()
        build = profile.builds[0]
        with (
            self._open_llmd(None) as ours,
            self._open_peer(build) as spinning,
            self._open_peer(build, "passive") as passive,
            busy_process(),
        ):
            rounds = Cases([ours, spinning, passive], None, profile, self._shape.vocab, quiet).all()
        return BesideWork(rounds, quiet.tally)

    def quality(self, peaked: Mapping[str, Divergence]) -> Quality:
        """Measure the errors of several kinds of weights, which the pages of dense shapes have, and the
        divergences of the timed model and the guide.
        """
        dense = self._shape.mixture is None and self._shape.linear is None
        errors = measure_errors(self._quant, self._kind, self._directory) if dense else []
        return Quality(errors, self._peer["types"], peaked, self._guide())

    def _guide(self) -> dict[str, Divergence]:
        """Measure the guide quantised to both formats, and unquantised in the peer's arithmetic."""
        guide, texts, threads = guide_directory(), guide_texts(), self._profile.threads
        room = Room.for_texts(TEXT_LEN, kept_by_dense(guide))
        with open_llmd(guide, asked_for(self._quant), self._cache, room, threads) as ours:
            scored = {f"llmd {self._quant}": scored_logits(ours, texts)}
        for kind in (self._kind, PLAIN):
            with open_peer(gguf_of(guide, kind), self._profile.builds[0], threads) as peer:
                scored[f"llama.cpp {kind}"] = scored_logits(peer, texts)
        return self._divergences(guide, texts, scored, room)

    def _divergences(
        self, directory: Path, texts: Sequence[Text], scored: Mapping[str, Logits], room: Room
    ) -> dict[str, Divergence]:
        """Return the divergences of logits from llmd's on the unquantised checkpoint."""
        with open_llmd(directory, None, self._cache, room, self._profile.threads) as plain:
            wanted = scored_logits(plain, texts)
        return {name: compare(wanted, logits) for name, logits in scored.items()}

    def _measured(
        self, sides: Sequence[Side], profile: Profile, quiet: QuietRounds
    ) -> tuple[list[Rounds], dict[str, float]]:
        """Measure every case, and the CPU's peak rates."""
        with open_probe(round(self._reads["llmd"].of(1)), self._profile.threads) as probe:
            rounds = Cases(sides, probe, profile, self._shape.vocab, quiet).all()
            return rounds, probe.call("integers")

    def _starts(
        self, which: str, builds: Sequence[str], isa: str | None, quiet: QuietRounds
    ) -> dict[str, Start]:
        """Measure loading in one quiet round: ``first`` (llmd's and the system's caches are empty) or
        ``again``.
        """

        def measure(_: int) -> dict[str, Start]:
            if which == "first":
                drop_packed(self._cache)
                drop_cached(self._directory, self._file)
            with self._open_llmd(isa) as ours:
                found = {f"{ours.name}, {which}": started(ours)}
            for build in builds:
                with self._open_peer(build) as peer:
                    found[f"{peer.name}, {which}"] = started(peer)
            return found

        (found,) = quiet.take(f"start, {which}", measure, 1, warm_up=False)
        return found

    @contextmanager
    def _opened(self, builds: Sequence[str], isa: str | None) -> Iterator[list[Side]]:
        """Open our side, then the peer's builds."""
        with ExitStack() as stack:
            ours = stack.enter_context(self._open_llmd(isa))
            yield [ours, *(stack.enter_context(self._open_peer(build)) for build in builds)]

    def _open_llmd(self, isa: str | None) -> Side:
        room = Room.for_profile(self._profile, self._shape)
        kv_dtype = convert(self._profile.kv, KVDtype)
        threads = self._profile.threads
        quant = asked_for(self._quant)
        return open_llmd(self._directory, quant, self._cache, room, threads, isa, kv_dtype)

    def _open_peer(self, build: str, waiting: str = "default") -> Side:
        return open_peer(self._file, build, self._profile.threads, KV_TYPES[self._profile.kv], waiting)
