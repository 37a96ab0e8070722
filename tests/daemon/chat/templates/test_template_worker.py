from __future__ import annotations

import io
import subprocess
import sys

from llmd.chat.templates.render_messages import Failed, Rendered, RenderJob, Reply, pack, unpack_reply
from llmd.process.frames import frame, read_payload

COMMAND = [sys.executable, "-P", "-m", "llmd.chat.templates.template_worker"]


def serve(sources: list[str], *, memory_bytes: int = 512 << 20) -> list[Reply]:
    """Return the replies to one job for each source."""
    jobs = [RenderJob(source, {"messages": []}, "2026-02-03T04:05:06") for source in sources]
    frames = b"".join(frame(pack(job)) for job in jobs)
    done = subprocess.run([*COMMAND, str(memory_bytes)], input=frames, capture_output=True, check=True)
    assert done.stderr == b""
    stream = io.BytesIO(done.stdout)
    assert read_payload(stream) == b""
    return [unpack_reply(payload) for payload in iter(lambda: read_payload(stream), None)]


def test_serves_until_its_input_ends() -> None:
    assert serve(["{{ 1 + 1 }}", "é"]) == [Rendered("2"), Rendered("é")]


def test_each_failure_has_its_kind() -> None:
    sources = ["\n{% if %}", "{{ raise_exception('no') }}", "{{ ''.__class__.__mro__ }}", "{{ 1 / 0 }}"]
    failures = [(reply.kind, reply.message) for reply in serve(sources) if isinstance(reply, Failed)]
    assert [kind for kind, _ in failures] == ["syntax", "refused", "sandbox", "runtime"]
    assert failures[0][1].startswith("line 2: ")
    assert failures[1][1] == "no"
    assert failures[3][1] == "ZeroDivisionError: division by zero"


def test_text_that_is_not_unicode_is_a_failure() -> None:
    *failed, rendered = serve(["{{ '\\ud800' }}", "{{ raise_exception('\\ud800') }}", "next"])
    assert all(isinstance(reply, Failed) and "surrogates" in reply.message for reply in failed)
    assert rendered == Rendered("next")


def test_ends_after_its_memory_ran_out() -> None:
    assert serve(["{{ 'x' * 2000000000 }}", "never rendered"]) == [Failed("memory", "out of memory")]


def test_imports_nothing_heavy() -> None:
    code = "import sys, llmd.chat.templates.template_worker; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stdout.split()
    assert not {"numpy", "tokenizers", "sentencepiece", "tiktoken", "aiohttp", "click", "pluggy"} & set(
        loaded
    )
    assert {"jinja2", "msgspec"} <= set(loaded)
