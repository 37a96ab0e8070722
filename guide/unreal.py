"""Names that look like llmd's and are not: flags, commands, settings, routes, words.

The guide must say that it does not know them. Real names are read from the documentation, and never drawn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from guide.grammar import normal
from guide.slots import invented

DOCS = Path(__file__).parent.parent / "docs"
QUALITIES = """
    auto fast turbo hyper super smart deep lazy eager strict safe silent dynamic adaptive global local shared remote
    async parallel virtual hybrid soft hard dual multi low high ultra extra secure sparse dense hot cold warm inline
    native legacy force skip ignore prefer allow disable enable use keep drop show hide with max min
""".split()
THINGS = """
    gpu vram cuda rocm vulkan tensor core layer expert adapter lora batch beam thread worker node cluster shard rank
    replica session memory swap disk buffer page prompt context history token vocab tokenizer embedding template
    graph kernel stream pipeline scheduler planner prefetch compile jit profile trace debug log audit telemetry
    metrics user account password login license proxy webhook plugin theme color font language voice image audio
    video camera sync backup snapshot restore mirror update mode level limit rate budget priority weight bias
    penalty noise dropout epoch gradient optimizer dataset checkpoint accuracy precision cpu numa energy power fan
    cloud region bucket queue index cache ratio factor count size path file dir url port host interval delay
""".split()
UNREAL_VERBS = """
    train finetune login logout push publish deploy upgrade sync backup restore export merge quantize optimize
    benchmark tune scan profile debug trace monitor dashboard web ui shell exec eval test build compile init setup
    connect attach join leave cluster node scale balance migrate clone fork branch commit diff history audit rotate
    encrypt lock unlock share invite user account billing agent rag index ingest embedder vector image draw speak
    listen transcribe translate summarize search-web browse schedule cron watch notify sleep wake hibernate flush
    purge vacuum repair heal rollback pause resume kill freeze thaw offload prefetch warmup cooldown calibrate
    distill prune adapt lora gpu cuda vulkan metal docker cloud proxy gateway tunnel expose register market store
""".split()
HEADS = """
    /v1 /v2 /v3 /api /llmd /admin /internal /v1/admin /api/v1 /api/v2 /v1/models /v1/chat
""".split()
TAILS = """
    train finetune images audio speech voices videos files batches users accounts login logout sessions threads
    agents search web documents vectors collections index upload download export import backup settings stats usage
    billing quota queue workers nodes cluster gpu memory history feedback moderations translate summarize classify
    tokens prompts templates plugins/install webhooks notify restart update status/full graph
""".split()
COINED_FRONTS = """
    turbo hyper quantum phase flux shadow ghost spiral meta pre post counter inverse cross ring star delta sigma
    lattice mirror crystal golden silver dark green orbit drift echo pulse storm tidal neural cosmic solar
""".split()
COINED_BACKS = """
    cache pager layer block buffer scheduler router table mode engine gate shard window tree pool lane bridge mesh
    compensator manifold oracle weaver balancer governor sampler codec pass frame beacon anchor funnel vault
""".split()
BAD_QUANTS = "q1 q5 q6 q7 q9 q12 q16 int5 int6 nf4 fp4 awq gptq".split()
QUANT_ENDS = "fast xs g8 ultra hq mini".split()


@cache
def real_names() -> frozenset[str]:
    """Each word in backticks of the documentation, each flag and route in it, and each setting."""
    pages = [DOCS.parent / "README.md", *DOCS.glob("*.md"), *DOCS.glob("api/*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted(pages))
    names = {word for quoted in re.findall(r"`([^`\n]+)`", text) for word in quoted.split()}
    names |= set(re.findall(r"--[a-z][a-z0-9-]*", text)) | set(re.findall(r"/[a-z][a-z0-9_/-]+", text))
    return frozenset(names | _properties(json.loads((DOCS / "config.schema.json").read_text("utf-8"))))


def _properties(schema: object) -> set[str]:
    if isinstance(schema, list):
        return {name for member in schema for name in _properties(member)}
    if not isinstance(schema, dict):
        return set()
    return set(schema.get("properties", {})) | {
        name for member in schema.values() for name in _properties(member)
    }


def _unreal(draw: Callable[[Random], str]) -> Callable[[Random], str]:
    def name(random: Random) -> str:
        while (drawn := draw(random)) in real_names():
            pass
        return drawn

    return name


def _words(random: Random, joint: str) -> str:
    kind = random.random()
    if kind < 0.45:
        return f"{random.choice(QUALITIES)}{joint}{random.choice(THINGS)}"
    if kind < 0.7:
        return f"{random.choice(THINGS)}{joint}{random.choice(THINGS)}"
    if kind < 0.85:
        return f"{random.choice(QUALITIES)}{joint}{random.choice(THINGS)}{joint}{random.choice(THINGS)}"
    return invented(random) if kind < 0.95 else f"{invented(random)}{joint}{random.choice(THINGS)}"


def _verb(random: Random) -> str:
    kind = random.random()
    if kind < 0.75:
        return random.choice(UNREAL_VERBS)
    return invented(random) if kind < 0.9 else f"{random.choice(UNREAL_VERBS)} {random.choice(THINGS)}"


def _route(random: Random) -> str:
    tail = random.choice(TAILS) if random.random() < 0.85 else invented(random)
    return f"{random.choice(HEADS)}/{tail}"


def _coined(random: Random) -> str:
    front = random.choice(COINED_FRONTS) if random.random() < 0.8 else invented(random)
    return f"{front}{random.choice(' -')}{random.choice(COINED_BACKS)}"


def _quant(random: Random) -> str:
    kind = random.choice(BAD_QUANTS)
    return kind if random.random() < 0.7 else f"{kind}_{random.choice(QUANT_ENDS)}"


UNREAL: dict[str, Callable[[Random], str]] = {
    "flag": _unreal(lambda random: "--" + _words(random, "-")),
    "verb": _unreal(_verb),
    "setting": _unreal(lambda random: _words(random, "_")),
    "variable": _unreal(lambda random: "LLMD_" + _words(random, "_").upper()),
    "route": _unreal(_route),
    "coined": _unreal(_coined),
    "badquant": _unreal(_quant),
}


def _any(words: list[str]) -> str:
    """Source of a regular expression for the normal form of one of these words."""
    return f"(?:{'|'.join(sorted({normal(word) for word in words}))})"


def _regexes() -> dict[str, str]:
    """What the names look like in normal form, except words that are invented each time."""
    word = _any([*QUALITIES, *THINGS])
    name = f" ?{word}(?: {word}){{1,2}} ?"
    return {
        "flag": name,
        "setting": name,
        "variable": f" ?llmd{name}",
        "verb": f" ?{_any(UNREAL_VERBS)}(?: {_any(THINGS)})? ?",
        "route": f" ?{_any(HEADS)} {_any(TAILS)} ?",
        "coined": f" ?{_any(COINED_FRONTS)} {_any(COINED_BACKS)} ?",
        "badquant": f" ?{_any(BAD_QUANTS)}(?: {_any(QUANT_ENDS)})? ?",
    }


UNREAL_REGEX = _regexes()
