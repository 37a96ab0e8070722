"""A headless Chromium, driven over the DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium")
LIMIT_S = 60.0
# As root and in containers, Chromium's own sandbox cannot start; it opens only the daemon under test.
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-port=0",
)


class PageError(AssertionError):
    """A script in the page failed."""


class Page:
    """One tab: its requests, its console and what scripts in it return."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.requests: list[str] = []
        """The addresses that the tab has asked for."""
        self.console: list[str] = []
        """What the browser reported: errors of scripts, refused loads, messages of the console."""

    async def send(self, method: str, **params: Any) -> Any:
        """Send a command of the protocol to this tab and return its result."""
        return await self._browser.send(method, params, self._session)

    def note(self, method: str, params: dict[str, Any]) -> None:
        """Keep an event that tests look at."""
        match method:
            case "Network.requestWillBeSent" | "Network.webSocketCreated":
                self.requests.append(params.get("request", params)["url"])
            case "Runtime.exceptionThrown":
                self.console.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded":
                self.console.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.console.append(json.dumps(params["args"]))

    async def open(self, url: str) -> None:
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def run(self, script: str) -> Any:
        """Return the value of an expression, awaited if it is a promise."""
        found = await self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        if "exceptionDetails" in found:
            raise PageError(json.dumps(found["exceptionDetails"]))
        return found["result"].get("value")

    async def until(self, condition: str) -> Any:
        """Wait until an expression is true and return its value."""
        script = f"""new Promise((resolve, reject) => {{
            const ends = performance.now() + {LIMIT_S * 1e3};
            const look = () => {{
                let found;
                try {{ found = ({condition}); }} catch {{ found = null; }}
                if (found) resolve(found);
                else if (performance.now() > ends) reject(new Error('not within {LIMIT_S} s'));
                else setTimeout(look, 20);
            }};
            look();
        }})"""
        try:
            return await self.run(script)
        except PageError as error:
            text = await self.run("document.body.innerText")
            raise PageError(f"{condition}: {error}\n{text}\n{self.console}") from None

    async def press(self, key: str, code: int, text: str = "", modifiers: int = 0) -> None:
        """Press and release a key where the focus is."""
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    async def enter(self) -> None:
        await self.press("Enter", 13, "\r")

    async def type(self, selector: str, text: str) -> None:
        """Focus an element and type into it."""
        await self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        await self.send("Input.insertText", text=text)

    async def click(self, selector: str) -> None:
        """Click an element with the mouse."""
        place = await self.until(
            f"""(() => {{
                const found = document.querySelector({json.dumps(selector)});
                found.scrollIntoView({{block: "center"}});
                const box = found.getBoundingClientRect();
                return box.width && [box.x + box.width / 2, box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.send(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1
            )

    async def look(self, width: int, height: int, *, dark: bool, phone: bool = False) -> None:
        """Set the size of the window and the theme of the system."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    async def picture(self) -> bytes:
        """Return a picture of the window, as PNG."""
        found = await self.send("Page.captureScreenshot", format="png")
        return base64.b64decode(found["data"])


class Browser:
    """The connection to the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pages: dict[str, Page] = {}

    async def send(self, method: str, params: dict[str, Any], session: str | None = None) -> Any:
        """Send a command and return its result."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        await self._socket.send_json(message | ({"sessionId": session} if session else {}))
        return await asyncio.wait_for(answer, LIMIT_S + 5.0)

    async def receive(self) -> None:
        """Hand answers and events to those who wait for them, until the browser ends."""
        async for message in self._socket:
            body = message.json()
            waiting = self._waiting.pop(body.get("id"), None)
            if waiting is not None and not waiting.done():
                if "error" in body:
                    waiting.set_exception(PageError(json.dumps(body["error"])))
                else:
                    waiting.set_result(body["result"])
            page = self._pages.get(body.get("sessionId", ""))
            if page is not None and "method" in body:
                page.note(body["method"], body["params"])

    async def page(self) -> Page:
        """Open an empty tab with storage of its own."""
        context = await self.send("Target.createBrowserContext", {})
        target = await self.send("Target.createTarget", {"url": "about:blank", **context})
        attached = await self.send("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        page = Page(self, attached["sessionId"])
        self._pages[attached["sessionId"]] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            await page.send(f"{domain}.enable")
        return page


@asynccontextmanager
async def running_browser(profile: Path) -> AsyncIterator[Browser]:
    """Run Chromium with an empty profile until the block ends."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *FLAGS, f"--user-data-dir={profile}", stderr=asyncio.subprocess.PIPE
    )
    try:
        url = await asyncio.wait_for(_address(process), LIMIT_S)
        async with aiohttp.ClientSession() as client, client.ws_connect(url, max_msg_size=0) as socket:
            browser = Browser(socket)
            async with asyncio.TaskGroup() as tasks:
                receiving = tasks.create_task(browser.receive())
                yield browser
                receiving.cancel()
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if line.startswith(b"DevTools listening on "):
            return line.decode().split()[-1]
    raise PageError("Chromium ended before it could be driven")
