"""What can be done with the chat that is open. Slash commands, keys and the command palette call this."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from llmd.api.errors import LlmdError
from llmd_tui.daemon.access import RefusedError
from llmd_tui.screen import refusal_words
from llmd_tui.screens.chat import counting
from llmd_tui.screens.chat.attachments import read_attachment
from llmd_tui.screens.chat.editor import edited_outside
from llmd_tui.screens.chat.export import export as write_export
from llmd_tui.screens.chat.generation_settings import changed, with_number, with_schema, with_thinking
from llmd_tui.screens.chat.model_list import rows
from llmd_tui.screens.chat.model_settings import accepted_ranges, applied, checked, model_values
from llmd_tui.screens.chat.open_chat import OpenChat
from llmd_tui.screens.chat.request_body import as_curl, chat_body
from llmd_tui.screens.chat.session_actions import rename as rename_session
from llmd_tui.screens.chat.slash_commands import help_text
from llmd_tui.screens.chat.store.chats import ChatStore
from llmd_tui.screens.chat.store.records import Content, Settings
from llmd_tui.screens.chat.tools import tool_names, unanswered, with_tools
from llmd_tui.screens.chat.widgets.dialogs import AskText, Choose
from llmd_tui.screens.chat.widgets.settings_dialog import SettingsDialog
from llmd_tui.widgets.help_dialog import HelpDialog

if TYPE_CHECKING:
    from llmd_tui.screens.chat.screen import ChatScreen

Act = Callable[["ChatScreen", str], Awaitable[None]]


async def show_help(screen: ChatScreen, _argument: str = "") -> None:
    """Show the slash commands."""
    await screen.ask(HelpDialog("Commands of the chat", help_text()))


async def new(screen: ChatScreen, _argument: str = "") -> None:
    """Begin a chat with the model of this one."""
    await screen.open_new()


async def reset(screen: ChatScreen, _argument: str = "") -> None:
    """Begin a chat with the settings of this one."""
    await screen.open_new(screen.chat.settings)


async def model(screen: ChatScreen, name: str = "") -> None:
    """Choose the model."""
    if not name and not screen.models and (reason := await _why_no_model(screen)):
        screen.notify(reason, severity="error", timeout=10)
        return
    chosen = name or await screen.ask(
        Choose("Chat with", list(rows(screen.models)), screen.chat.settings.model)
    )
    if chosen:
        await screen.set_settings(changed(screen.chat.settings, model=chosen))
        screen.tui.prefer(model=chosen)


async def _why_no_model(screen: ChatScreen) -> str:
    """Ask for the models again; return why there is none, or nothing if there is one."""
    try:
        await screen.fetch()
    except RefusedError as error:
        return refusal_words(error)
    except LlmdError as error:
        return str(error)
    return "" if screen.models else "The daemon has no model to chat with: pull one on the screen Models."


async def system(screen: ChatScreen, text: str = "") -> None:
    """Set the system prompt."""
    settings = screen.chat.settings
    written = text or await screen.ask(AskText("System prompt", settings.system))
    if written is not None:
        await screen.set_settings(changed(settings, system=written))
        screen.say("The system prompt is set." if written else "There is no system prompt.")


async def settings(screen: ChatScreen, text: str = "") -> None:
    """Change a setting, or all of them in a panel."""
    name, _, value = text.partition(" ")
    present, daemon = screen.chat.settings, screen.daemon
    ranges, models = await accepted_ranges(daemon), await model_values(daemon, present.model)
    if name:
        wanted: Settings | None = checked(with_number(present, name, value), ranges)
    else:
        wanted = await screen.ask(SettingsDialog(present, ranges, models))
    if wanted is not None:
        await screen.set_settings(wanted)
        screen.say(applied(wanted, models))


async def schema(screen: ChatScreen, file: str = "") -> None:
    """Bind answers to a JSON schema."""
    wanted = await asyncio.to_thread(with_schema, screen.chat.settings, file)
    await screen.set_settings(wanted)
    screen.say("Answers follow the schema." if wanted.schema else "Answers are free.")


async def tools(screen: ChatScreen, file: str = "") -> None:
    """Offer tools to the model."""
    wanted = await asyncio.to_thread(with_tools, screen.chat.settings, file)
    await screen.set_settings(wanted)
    names = tool_names(wanted)
    screen.say(
        f"The model may call {names}. You give the results: llmd runs no tool."
        if names
        else "No tools are offered."
    )


async def result(screen: ChatScreen, text: str = "") -> None:
    """Send what the called tools returned; those that ``text`` does not answer are asked for."""
    chat = screen.chat
    calls = unanswered(chat.path)
    if not calls:
        screen.say("No call of a tool waits for a result.")
    for call in calls:
        written = text or await screen.ask(AskText(f"What {call.name} returned for {call.arguments}"))
        text = ""
        if written is None:
            return
        leaf = (await chat.add("tool", Content(written, calls=(call,)), chat.tree.leaf)).message_id
        await screen.show_chat()
        if call is calls[-1]:
            screen.answer(leaf)


async def think(screen: ChatScreen, text: str = "") -> None:
    """Let the model reason before it answers, or not."""
    await screen.set_settings(with_thinking(screen.chat.settings, text))
    screen.say(f"Reasoning: {text}. It has an effect only with a model that can reason.")


async def attach(screen: ChatScreen, file: str = "") -> None:
    """Send a text file with the next message."""
    screen.attach(await asyncio.to_thread(read_attachment, file))


async def drop(screen: ChatScreen, _argument: str = "") -> None:
    """Leave the oldest turns out of later requests."""
    chat, window = screen.chat, screen.window
    if window is None:
        screen.say("The length of the context is not known before the model is loaded.")
        return
    first = await counting.shortened(screen.daemon, chat, screen.draft(), window)
    if first is None:
        screen.say("There is nothing to drop.")
        return
    await chat.change(first_sent=first)
    await screen.show_chat()
    screen.say("The oldest turns stay here, but are no longer sent.")


async def edit(screen: ChatScreen, _argument: str = "") -> None:
    """Write the message in the editor."""
    screen.prompt.write(edited_outside(screen.tui, screen.prompt.text))


async def find(screen: ChatScreen, words: str = "") -> None:
    """Search in this chat."""
    screen.find_bar.open(words)


async def rename(screen: ChatScreen, title: str = "") -> None:
    """Name this chat."""
    if title:
        await screen.chat.change(title=title)
        await screen.list_sessions()
    else:
        await rename_session(screen, screen.chat.session)


async def save(screen: ChatScreen, name: str = "") -> None:
    """Save the conversation for `llmd chat`."""
    if not name:
        screen.say("Write /save NAME.")
        return
    chat = screen.chat
    await asyncio.to_thread(screen.saved.write, name, chat.settings, chat.path)
    screen.composer.saved = await asyncio.to_thread(screen.saved.names)
    screen.say(f"Saved as {name}. `llmd chat` loads it with /load {name}.")


async def load(screen: ChatScreen, name: str = "") -> None:
    """Begin a chat with a saved conversation."""
    names = await asyncio.to_thread(screen.saved.names)
    if not name and not names:
        screen.say("No conversation has been saved; /save NAME saves this one.")
        return
    chosen = name or await screen.ask(Choose("Go on with", [(one, one) for one in names]))
    if chosen:
        saved = await asyncio.to_thread(screen.saved.read, chosen)
        await screen.open(await OpenChat.restore(screen.store, saved, chosen))


async def export(screen: ChatScreen, file: str = "") -> None:
    """Write this chat to a file."""
    chat = screen.chat
    everything = await screen.store.call(ChatStore.messages, chat.session.session_id)
    path = await asyncio.to_thread(write_export, file, chat.session, chat.path, everything)
    screen.say(f"Written to {path}.")


async def curl(screen: ChatScreen, _argument: str = "") -> None:
    """Copy the request as a curl command."""
    chat = screen.chat
    path = [one for one in chat.path if one.message_id != screen.running_id]
    while path and path[-1].role == "assistant" and screen.draft() is None:
        path.pop()
    body = chat_body(chat.settings, path, first=chat.session.first_sent, draft=screen.draft())
    screen.tui.copy(as_curl(body, screen.daemon.address), "the request as a curl command")


async def leave(screen: ChatScreen, _argument: str = "") -> None:
    """Leave the interface."""
    screen.tui.exit()


ACTIONS: Mapping[str, Act] = {
    "help": show_help,
    "new": new,
    "reset": reset,
    "model": model,
    "system": system,
    "set": settings,
    "schema": schema,
    "tools": tools,
    "result": result,
    "think": think,
    "attach": attach,
    "drop": drop,
    "edit": edit,
    "find": find,
    "rename": rename,
    "save": save,
    "load": load,
    "export": export,
    "curl": curl,
    "exit": leave,
}
"""By the name of the slash command."""
