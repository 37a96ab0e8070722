"""llmd and llama.cpp on the same weights of one shape, in turn: ``python -m bench.cpu [SHAPE] [--profile NAME]``.

``make bench-cpu`` builds what it needs first. METHODOLOGY.md says what is measured and how.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.checkpoint import MODELS, checkpoint_directory, write_checkpoint
from bench.cpu_profiles import Profile, add_options, chosen
from bench.cpu_quality import (
    Divergence,
    Text,
    compare,
    guide_texts,
    random_texts,
    read_bytes,
    scored_logits,
    weight_error,
)
from bench.cpu_report import Comparison, Quality, Section, page
from bench.cpu_rounds import measure
from bench.cpu_sides import (
    Room,
    Start,
    drop_cached,
    open_llmd,
    open_peer,
    open_probe,
    started,
)
from bench.machine import Occupation, describe
from bench.peer import make_gguf, peer_version, run_peer
from bench.shapes import SHAPES, Shape
from bench.worker import Side
from llmd.builtin.guide import guide_directory

RESULTS = Path(__file__).parent / "results"
PLAIN = "BF16"
TEXT_LEN = 256
"""Room for any text that is scored."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.cpu")
    parser.add_argument("shape", nargs="?", default="llama-1b", choices=SHAPES)
    add_options(parser)
    arguments = parser.parse_args()
    try:
        profile, warnings = chosen(arguments)
    except ValueError as error:
        parser.error(str(error))
    for warning in warnings:
        print(f"warning: not as pinned: {warning}", file=sys.stderr)
    shape = SHAPES[arguments.shape]
    found = list(sections(shape, profile))
    now = datetime.now(UTC)
    text = page(shape, profile, warnings, f"{now:%Y-%m-%d}, {describe()}", peer_version(), found)
    print(text)
    (RESULTS / f"{now:%Y-%m-%d}-cpu-{shape.name}.md").write_text(text)


def sections(shape: Shape, profile: Profile) -> Iterator[Section]:
    """Each pair of formats at its best; the first also with each instruction set alone."""
    directory = write_checkpoint(shape, checkpoint_directory(shape))
    for number, (quant, kind) in enumerate(profile.pairs):
        with tempfile.TemporaryDirectory(prefix="cache-", dir=MODELS) as cache:
            pair = Pair(shape, profile, quant, kind, directory, Path(cache))
            best = pair.compare(profile, profile.builds, None)
            isas = profile.isas if number == 0 else ()
            alone = [pair.compare(profile.without_depth(), (isa,), isa) for isa in isas]
            yield Section(quant, kind, [best, *alone], pair.quality())


class Pair:
    """A format of llmd beside a type of llama.cpp, on one checkpoint."""

    def __init__(
        self, shape: Shape, profile: Profile, quant: str, kind: str, directory: Path, cache: Path
    ) -> None:
        self._shape, self._profile = shape, profile
        self._quant, self._kind = quant, kind
        self._directory, self._cache = directory, cache
        self._file = make_gguf(directory, kind, directory.with_name(f"{directory.name}.{kind}.gguf"))
        facts = run_peer("bench.gguf_quality", str(directory), str(self._file))
        self._peer: dict[str, Any] = json.loads(facts)
        self._bytes = {
            "llmd": read_bytes(directory, quant),
            "llama.cpp": int(self._peer["read_bytes"]),
        }

    def compare(self, profile: Profile, builds: Sequence[str], isa: str | None) -> Comparison:
        """Speed, loading and memory beside builds of llama.cpp, with an instruction set of llmd (None: its best)."""
        starts = {} if isa else self._first_starts(builds[0])
        with ExitStack() as stack:
            ours = stack.enter_context(self._open_llmd(isa))
            peers = [
                stack.enter_context(open_peer(self._file, build, self._profile.threads)) for build in builds
            ]
            starts |= {f"{side.name}, again": started(side) for side in (ours, *peers)}
            probe = stack.enter_context(open_probe(self._bytes["llmd"], self._profile.threads))
            occupation = Occupation()
            rounds = measure([ours, *peers], probe, profile, self._shape.vocab)
            others = occupation.of_others()
            return Comparison(isa, rounds, probe.call("integers"), self._bytes, starts, others)

    def quality(self) -> Quality:
        """Errors of the weights that were timed, and divergences of this model and of the guide."""
        guide = guide_directory()
        file = {kind: make_gguf(guide, kind, MODELS / f"guide.{kind}.gguf") for kind in (self._kind, PLAIN)}
        return Quality(
            errors={
                "llmd": weight_error(self._directory, self._quant),
                "llama.cpp": self._peer["nmse"],
            },
            types=self._peer["types"],
            peaked=self._divergences(
                self._directory, {self._kind: self._file}, random_texts(self._shape.vocab)
            ),
            guide=self._divergences(guide, file, guide_texts()),
        )

    def _divergences(
        self, directory: Path, files: Mapping[str, Path], texts: Sequence[Text]
    ) -> dict[str, Divergence]:
        """Of each side from llmd without quantisation."""
        room, threads = Room.for_texts(TEXT_LEN, directory), self._profile.threads
        openers = {
            f"llmd {self._quant}": partial(open_llmd, directory, self._quant, self._cache, room, threads)
        }
        openers |= {
            f"llama.cpp {kind}": partial(open_peer, file, self._profile.builds[0], threads)
            for kind, file in files.items()
        }
        with open_llmd(directory, None, self._cache, room, threads) as plain:
            wanted = scored_logits(plain, texts)
        found = {}
        for name, opener in openers.items():
            with opener() as side:
                found[name] = compare(wanted, scored_logits(side, texts))
        return found

    def _first_starts(self, build: str) -> dict[str, Start]:
        """What loading takes while llmd has nothing in its cache, and the system none of the files in its own."""
        drop_cached(self._directory, self._file)
        with self._open_llmd(None) as ours:
            starts = {f"{ours.name}, first": started(ours)}
        with open_peer(self._file, build, self._profile.threads) as other:
            return starts | {f"{other.name}, first": started(other)}

    def _open_llmd(self, isa: str | None) -> Side:
        room = Room.for_profile(self._profile, self._shape)
        return open_llmd(self._directory, self._quant, self._cache, room, self._profile.threads, isa)


if __name__ == "__main__":
    main()
