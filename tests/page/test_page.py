"""The web page in a real browser: `make test-full` runs it in Chromium."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from llmd.builtin.guide import guide_directory
from llmd.config.keys import KeyFile
from tests.page.browser import CHROMIUM, Page, running_browser
from tests.serving.model import write_model
from tests.serving.running import MODEL, RunningDaemon, directories_below, running_daemon

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
]

PICTURES = Path(__file__).parents[2] / "build" / "page"
"""Pictures of the page, to look at after a run."""

QUESTION = "How do I see my devices?"
READY = "document.querySelector('#model').value"
FIGURES = "[...document.querySelectorAll('.assistant .figures')].at(-1).textContent"
ENDED = f"!document.querySelector('#send').hidden && {FIGURES}"
ENDLESS = {"system": "", "tools": "", "sampling": {"ignore_eos": True}}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "The city"}},
            "required": ["city"],
        },
    },
}
MARKDOWN = """# Title
Some **bold** and `code`, [a link](https://example.org/), [none](javascript:alert(1)) ![x](https://example.org/x.png)

- one
  1. nested

```python
print("<b>")
```

| a | b |
|---|--:|
| 1 | 2 |

<script>window.broken = true</script><img src=x onerror="window.broken = true">"""


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    directories = directories_below(tmp_path_factory.mktemp("guide"))
    with running_daemon(directories, models=(str(guide_directory()),), device="cpu") as running:
        yield running


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    """A daemon whose model writes at random for a long time."""
    directories = directories_below(tmp_path_factory.mktemp("talkative"))
    write_model(directories.models / MODEL, context_len=1 << 15)
    with running_daemon(directories) as running:
        yield running


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    """An empty tab. At the end: the policy refused nothing, no script failed, nothing left the daemon."""
    async with running_browser(tmp_path / "profile") as browser:
        tab = await browser.page()
        await tab.look(1280, 800, dark=False)
        yield tab
        hosts = {url.split("/")[2] for url in tab.requests if not url.startswith("about:")}
    assert len(hosts) == 1
    assert all(host.startswith("127.0.0.1:") for host in hosts)
    assert [one for one in tab.console if "status of 401" not in one] == []


async def ask(page: Page, text: str) -> None:
    await page.type("#prompt", text)
    await page.enter()


async def answer(page: Page) -> str:
    """Return the text of the last answer once it is complete."""
    await page.until(ENDED)
    found: str = await page.run("[...document.querySelectorAll('.assistant > .text')].at(-1).innerText")
    return found


async def open_chat(page: Page, daemon: RunningDaemon, **chat: Any) -> None:
    """Open the page with a conversation that the browser has kept."""
    kept = {"id": "kept", "title": "", "draft": "", "model": "", "messages": []}
    settings = {"system": "", "tools": "", "sampling": {}}
    chats = json.dumps([{**kept, "settings": settings, **chat}])
    script = (
        f"if (!localStorage.getItem('llmd.chats')) localStorage.setItem('llmd.chats', {json.dumps(chats)})"
    )
    await page.send("Page.addScriptToEvaluateOnNewDocument", source=f"if (location.host) {{ {script} }}")
    await page.open(daemon.url)
    await page.until(READY)


def save(picture: bytes, name: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    (PICTURES / f"{name}.png").write_bytes(picture)


async def test_an_answer_streams(page: Page, talkative: RunningDaemon) -> None:
    await open_chat(page, talkative, settings=ENDLESS)
    await page.run(
        """(() => {
            window.lengths = new Set();
            new MutationObserver(() => {
                const text = document.querySelector(".assistant > .text");
                if (text) window.lengths.add(text.innerText.length);
            }).observe(document.querySelector("#messages"), {childList: true, subtree: true, characterData: true});
        })()"""
    )
    await ask(page, "Write")
    await page.until("window.lengths.size > 5")
    assert await page.run("document.querySelector('.assistant').ariaBusy") == "true"
    await page.click("#stop")
    await answer(page)
    assert await page.run("document.querySelector('.assistant').ariaBusy") == "false"


async def test_a_conversation_stays_after_a_reload(page: Page, guide: RunningDaemon) -> None:
    await page.open(guide.url)
    await page.until(READY)
    await ask(page, QUESTION)
    text = await answer(page)
    assert "llmd devices" in text
    figures = await page.run(FIGURES)
    assert "tokens/s" in figures
    assert await page.run("document.querySelector('#announcer').textContent.length > 10")
    await page.until("/^\\d+ of 1,024 tokens$/.test(document.querySelector('#gauge-text').textContent)")
    await page.open(guide.url)
    await page.until(READY)
    assert await answer(page) == text
    assert await page.run("document.querySelector('.user > .text').textContent") == QUESTION


async def test_markup_in_a_prompt_and_in_an_answer_is_text(page: Page, guide: RunningDaemon) -> None:
    messages = [
        {"id": "1", "role": "user", "content": "<script>window.broken = true</script>"},
        {"id": "2", "role": "assistant", "content": MARKDOWN, "reasoning": "Hm, **so**", "calls": []},
    ]
    await open_chat(page, guide, messages=messages)
    shown = await page.run("document.querySelector('#messages').innerText")
    assert "<script>window.broken = true</script>" in shown
    assert '<img src=x onerror="window.broken = true">' in shown
    assert "[none](javascript:alert(1))" in shown
    parts = "h3, strong, code, ol li, pre code, td.right, a[href$='.org/']"
    found = await page.run(
        f'[...document.querySelectorAll(".assistant > .text :is({parts})")].map((one) => one.textContent)'
    )
    assert found == ["Title", "bold", "code", "a link", "nested", 'print("<b>")', "2"]
    await ask(page, '<img src=x onerror="window.broken = true"> <script>window.broken = true</script>')
    await answer(page)
    assert await page.run("[...document.querySelectorAll('.user > .text')].at(-1).children.length") == 0
    assert await page.run("document.querySelectorAll('#messages :is(script, img, iframe)').length") == 0
    assert await page.run("window.broken === undefined && !document.querySelector('.reasoning').open")
    copied = "document.querySelector('.code button')"
    await page.click(".code button")
    await page.until(f"{copied}.textContent !== 'Copy'")


async def test_stop_ends_the_answer_for_the_daemon_too(page: Page, talkative: RunningDaemon) -> None:
    await open_chat(page, talkative, settings=ENDLESS)
    await ask(page, "Write")
    await page.until("document.querySelector('.assistant > .text').innerText.length > 20")
    await page.press("Escape", 27)
    text = await answer(page)
    figures = await page.run(FIGURES)
    assert figures.endswith("stopped")
    await page.click("#to-monitor")
    await page.until("document.querySelector('#monitor-view').innerText.includes('the client left')")
    await page.click("#to-chat")
    assert await answer(page) == text
    await page.run("[...document.querySelectorAll('.buttons button')].at(-1).click()")  # continue
    await page.until(f"document.querySelector('.assistant > .text').innerText.length > {len(text) + 10}")
    await page.click("#stop")
    assert (await answer(page)).startswith(text.strip()[:10])


async def test_the_monitor_moves(page: Page, talkative: RunningDaemon) -> None:
    await open_chat(page, talkative, settings=ENDLESS)
    await ask(page, "Write")
    await page.until("document.querySelector('.assistant > .text').innerText.length > 20")
    await page.click("#to-monitor")
    requests = "[...document.querySelectorAll('#monitor-view section')].find((one) => /^Requests/.test(one.innerText))"
    await page.until(f"{requests}.innerText.includes('answering')")
    tokens = f"parseInt({requests}.querySelector('td[data-label=Answer]').innerText.replace(',', ''))"
    before = await page.until(tokens)
    await page.until(f"{tokens} > {before}")
    await page.until("parseFloat(document.querySelector('.tile strong').innerText) > 0")
    await page.until("document.querySelector('#monitor-view').innerText.includes('reference')")
    await page.click("#to-chat")
    await page.click("#stop")
    await answer(page)


async def test_a_question_is_edited_and_an_answer_made_again(page: Page, guide: RunningDaemon) -> None:
    await page.open(guide.url)
    await page.until(READY)
    await ask(page, "Hello")
    await answer(page)
    await page.run("[...document.querySelectorAll('.user .buttons button')].at(-1).click()")
    await page.run("document.querySelector('.edit textarea').select()")
    await page.send("Input.insertText", text=QUESTION)
    await page.enter()
    await page.until("!document.querySelector('.edit')")
    assert "llmd devices" in await answer(page)
    again = "[...document.querySelectorAll('.assistant .buttons button')].find((one) => one.innerText === 'Regenerate')"
    await page.run(f"{again}.click()")
    assert "llmd devices" in await answer(page)
    assert await page.run("document.querySelectorAll('article').length") == 2


async def test_a_call_is_shown_and_its_result_goes_back(page: Page, guide: RunningDaemon) -> None:
    settings = {"system": "", "tools": json.dumps([TOOL]), "sampling": {"temperature": 0}}
    await open_chat(page, guide, settings=settings)
    await ask(page, "What is the weather in Lisbon?")
    await page.until("document.querySelector('.call form:not([hidden])')")
    assert await page.run("document.querySelector('.call h3').textContent") == "Calls get_weather"
    assert json.loads(await page.run("document.querySelector('.call code').textContent")) == {
        "city": "Lisbon"
    }
    await page.type(".call textarea", '{"temperature": 21, "unit": "celsius"}')
    await page.click(".call form button")
    await page.until("document.querySelectorAll('.assistant').length === 2")
    assert "21" in await answer(page)


async def test_a_failure_is_said_in_words(page: Page, guide: RunningDaemon) -> None:
    await open_chat(page, guide, settings={"system": "", "tools": "", "sampling": {"temperature": 5}})
    await ask(page, "Hello")
    words = await page.until("document.querySelector('.assistant .failure').innerText")
    assert words == "Temperature must be between 0.0 and 2.0, not 5"
    page.console.clear()  # the browser notes the 400


async def test_a_protected_daemon_asks_for_a_key(page: Page, tmp_path: Path) -> None:
    with running_daemon(directories_below(tmp_path), models=(), require_key=True) as locked:
        keys = KeyFile(locked.directories.keys)
        key, manager = keys.add("reader"), keys.add("manager", manages=True)
        locked.client().reload()
        await page.open(locked.url)
        await page.until("document.querySelector('#key-dialog').open")
        assert "required" in await page.run("document.querySelector('#key-reason').innerText")
        await page.type("#key", "llmd-wrong-key")
        await page.enter()
        await page.until("document.querySelector('#key-reason').innerText.includes('unknown')")
        await page.type("#key", key)
        await page.enter()
        await page.until("!document.querySelector('#key-dialog').open")
        await page.click("#to-monitor")
        await page.until("document.querySelector('#monitor-view').innerText.includes('does not allow')")
        await page.click(".notice button")
        await page.type("#key", manager)
        await page.enter()
        await page.until("document.querySelector('#monitor-view').innerText.includes('reference')")
        assert await page.run("sessionStorage.getItem('llmd.key')") == manager
        assert manager not in await page.run("JSON.stringify(localStorage)")
        await page.open("about:blank")
    page.console.clear()  # the browser notes the 401s and the 403


@pytest.mark.parametrize(
    ("name", "width", "height", "dark"),
    [("light", 1280, 800, False), ("dark", 1280, 800, True), ("phone", 390, 780, False)],
)
async def test_it_fits_and_can_be_read(
    page: Page, guide: RunningDaemon, name: str, width: int, height: int, *, dark: bool
) -> None:
    await page.look(width, height, dark=dark, phone=name == "phone")
    messages = [
        {"id": "1", "role": "user", "content": "Show me what you can write"},
        {"id": "2", "role": "assistant", "content": MARKDOWN, "reasoning": "Hm, **so**", "calls": []},
    ]
    await open_chat(page, guide, messages=messages)
    for view in ("chat", "monitor"):
        await page.click(f"#to-{view}")
        if view == "monitor":
            await page.until("document.querySelector('#monitor-view').innerText.includes('guide')")
        save(await page.picture(), f"{view}-{name}")
        assert await page.run("document.documentElement.scrollWidth <= innerWidth")
        assert await page.run(CONTRASTS) == []


CONTRASTS = """(() => {
    const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => {
        const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = (element) => {
        for (let one = element; one; one = one.parentElement) {
            const colour = rgb(getComputedStyle(one).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const element of document.querySelectorAll("body *")) {
        const own = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
        if (!own || !element.checkVisibility() || element.tagName === "OPTION") continue;
        const [a, b] = [light(rgb(getComputedStyle(element).color)), light(behind(element))].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < 4.5) found.push(`${element.tagName} ${element.textContent.slice(0, 30)}: ${contrast.toFixed(2)}`);
    }
    return found;
})()"""
"""Texts whose contrast with what is behind them is below 4.5 : 1."""


async def test_everything_is_reached_by_keyboard(page: Page, guide: RunningDaemon) -> None:
    await page.open(guide.url)
    await page.until(READY)
    await page.run("document.activeElement.blur()")
    reached = []
    for _ in range(40):
        await page.press("Tab", 9)
        reached.append(await page.run("document.activeElement.id || document.activeElement.tagName"))
    wanted = {"to-chat", "to-monitor", "theme", "new-chat", "model", "prompt", "send", "system-prompt"}
    assert wanted <= set(reached)
    unnamed = """[...document.querySelectorAll("button, input, select, textarea, meter")].filter((one) =>
        !(one.ariaLabel || one.labels?.length || one.textContent.trim() || one.getAttribute("aria-labelledby")))
        .map((one) => one.outerHTML)"""
    assert await page.run(unnamed) == []


async def test_the_theme_is_chosen_and_kept(page: Page, guide: RunningDaemon) -> None:
    await page.open(guide.url)
    await page.until(READY)
    seen = []
    for _ in range(3):
        await page.click("#theme")
        seen.append(await page.run("document.documentElement.dataset.theme"))
    assert seen == ["light", "dark", "auto"]
    await page.click("#theme")
    await page.open(guide.url)
    assert await page.until("document.documentElement.dataset.theme") == "light"
