from __future__ import annotations

import subprocess
import sys

from llmd.chat.templates.template_frames import (
    HEADER_BYTES,
    Failed,
    Ready,
    Rendered,
    RenderJob,
    Reply,
    pack,
    unpack_reply,
)

COMMAND = [sys.executable, "-P", "-m", "llmd.chat.templates.template_worker"]


def serve(sources: list[str], *, memory_bytes: int = 512 << 20) -> list[Reply]:
    frames = b"".join(pack(RenderJob(source, {"messages": []}, "2026-02-03T04:05:06")) for source in sources)
    done = subprocess.run([*COMMAND, str(memory_bytes)], input=frames, capture_output=True, check=True)
    assert done.stderr == b""
    return replies(done.stdout)


def replies(output: bytes) -> list[Reply]:
    found = []
    while output:
        size = HEADER_BYTES + int.from_bytes(output[:HEADER_BYTES], "little")
        found.append(unpack_reply(output[HEADER_BYTES:size]))
        output = output[size:]
    return found


def test_serves_until_its_input_ends() -> None:
    assert serve(["{{ 1 + 1 }}", "é"]) == [Ready(), Rendered("2"), Rendered("é")]


def test_each_failure_has_its_kind() -> None:
    sources = ["\n{% if %}", "{{ raise_exception('no') }}", "{{ ''.__class__.__mro__ }}", "{{ 1 / 0 }}"]
    failures = [(reply.kind, reply.message) for reply in serve(sources)[1:] if isinstance(reply, Failed)]
    assert [kind for kind, _ in failures] == ["syntax", "refused", "sandbox", "runtime"]
    assert failures[0][1].startswith("line 2: ")
    assert failures[1][1] == "no"
    assert failures[3][1] == "ZeroDivisionError: division by zero"


def test_text_that_is_not_unicode_is_a_failure() -> None:
    started, *failed, rendered = serve(["{{ '\\ud800' }}", "{{ raise_exception('\\ud800') }}", "next"])
    assert started == Ready()
    assert all(isinstance(reply, Failed) and "surrogates" in reply.message for reply in failed)
    assert rendered == Rendered("next")


def test_ends_after_its_memory_ran_out() -> None:
    assert serve(["{{ 'x' * 2000000000 }}", "never rendered"]) == [Ready(), Failed("memory", "out of memory")]


def test_imports_nothing_heavy() -> None:
    code = "import sys, llmd.chat.templates.template_worker; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stdout.split()
    assert not {"numpy", "tokenizers", "sentencepiece", "tiktoken", "aiohttp", "click", "pluggy"} & set(
        loaded
    )
    assert {"jinja2", "msgspec"} <= set(loaded)
