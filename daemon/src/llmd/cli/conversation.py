"""A conversation with a model: what was said, and the commands that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from llmd.api.errors import LlmdError
from llmd.cli.generation_options import read_field
from llmd.cli.streaming import Printed

Message = dict[str, str]
Ask = Callable[[list[Message], Mapping[str, Any]], Printed]

HELP = """\
/system TEXT      set the instructions; without TEXT, show them
/set NAME VALUE   set max_tokens, temperature (temp), top_k, top_p, min_p or seed; without NAME, show all
/think on|off     let the model think before it answers, where it can
/reset            forget the conversation
/help             show this
/exit, /quit      leave
\"\"\"               begins and ends a message of several lines
Ctrl-C            ends an answer; twice: leave"""


class Conversation:
    """Keeps the messages and settings. ``ask`` answers them and shows the answer, ``say`` tells the user something."""

    def __init__(
        self, ask: Ask, say: Callable[[str], None], system: str | None, fields: dict[str, Any]
    ) -> None:
        self._ask = ask
        self._say = say
        self._system = system
        self._fields = fields
        self._messages: list[Message] = []

    def take(self, line: str) -> bool:
        """Obey a command or answer a message; returns whether the conversation goes on."""
        if not line.startswith("/"):
            if line.strip():
                self._answer(line)
            return True
        name, _, rest = line[1:].partition(" ")
        return self._obey(name.strip(), rest.strip())

    def _answer(self, text: str) -> None:
        """A question that could not be answered is as good as not asked."""
        question = {"role": "user", "content": text}
        try:
            printed = self._ask([*self._instructions(), *self._messages, question], self._fields)
        except LlmdError as error:
            self._say(str(error))
            return
        self._messages += [question, {"role": "assistant", "content": printed.text}]

    def _instructions(self) -> list[Message]:
        return [{"role": "system", "content": self._system}] if self._system else []

    def _obey(self, name: str, rest: str) -> bool:
        match name:
            case "exit" | "quit":
                return False
            case "help":
                self._say(HELP)
            case "reset":
                self._messages.clear()
                self._say("forgotten")
            case "system":
                self._set_system(rest)
            case "think":
                self._think(rest)
            case "set":
                self._set(rest)
            case _:
                self._say(f"there is no command /{name}; /help lists them")
        return True

    def _set_system(self, text: str) -> None:
        self._system = text or self._system
        self._say(self._system or "no instructions")

    def _think(self, state: str) -> None:
        if state not in {"on", "off"}:
            self._say("write /think on or /think off")
            return
        self._fields["chat_template_kwargs"] = {"enable_thinking": state == "on"}
        self._say(f"thinking is {state}")

    def _set(self, text: str) -> None:
        if text:
            name, _, value = text.partition(" ")
            try:
                field, number = read_field(name, value.strip())
            except ValueError as error:
                self._say(str(error))
                return
            self._fields[field] = number
        self._say("\n".join(self._settings()) or "everything is as the model's makers chose")

    def _settings(self) -> Iterator[str]:
        return (f"{name} {value}" for name, value in self._fields.items() if name != "chat_template_kwargs")
