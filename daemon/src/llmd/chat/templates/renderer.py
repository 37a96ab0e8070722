"""Renders chat templates, which turn conversations into prompts, in a separate process.

Templates come with models and are untrusted programs. They run in jinja2's immutable sandbox, in one process
that is killed when it exceeds its time or memory limit; the next render starts a new one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from llmd.api.errors import RequestError, TemplateError
from llmd.chat.templates.efforts import Efforts
from llmd.chat.templates.literals import LiteralSwap, RenderedPrompt
from llmd.chat.templates.render_errors import TemplateFailedError, TemplateRefusedError
from llmd.chat.templates.render_messages import Failed, Rendered, RenderJob, pack
from llmd.chat.templates.template_files import ChatTemplate
from llmd.chat.templates.template_messages import Message, foldings, prepare_messages
from llmd.chat.templates.template_process import TemplateProcess
from llmd.chat.templates.text_parts import Conversation, Separator, find_separator
from llmd.process.worker import WorkerLostError

TIME_LIMIT_S = 2.0
# Address space, not resident memory; the process itself maps about 60 MB.
MEMORY_LIMIT_BYTES = 512 << 20
# The longest text of the template itself that is quoted in an error.
MAX_REASON_LEN = 1000

# Marks the end of a message that is to be continued. A Unicode noncharacter, so that no text contains it.
_CONTINUE = "\ufdd0"
_RESERVED = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "strftime_now", "raise_exception"}
)
_FIXES = {
    "syntax": "the model's chat template does not parse; correct it or use /v1/completions",
    "sandbox": "the model's chat template tried something that the sandbox forbids; do not trust this model",
    "memory": "the model's chat template exceeded its memory limit; shorten the messages or correct the template",
    "runtime": "the model's chat template cannot render these messages; correct it or use /v1/completions",
}


class TemplateRenderer:
    """Renders chat templates in one process, started by the first render.
    Thread-safe: renders run one at a time.

    ``clock`` gives the local time that templates may write into a prompt.
    """

    def __init__(
        self,
        *,
        time_limit_s: float = TIME_LIMIT_S,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
        clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._time_limit_s = time_limit_s
        self._memory_limit_bytes = memory_limit_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._process: TemplateProcess | None = None
        self._separators: dict[tuple[str, str], str] = {}
        self._efforts = Efforts()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process. A later render starts a new one."""
        with self._lock:
            self._end()

    def render(
        self,
        template: ChatTemplate,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> RenderedPrompt:
        """Return the prompt of a conversation.
        Blocks for up to the time limit; from asyncio, call it in a thread.

        System messages that the template refuses are merged into the first one, or into the first user
        message. ``extra`` holds additional variables (``chat_template_kwargs``); a ``reasoning_effort`` that
        the template refuses is replaced by the nearest that it accepts. ``continue_final_message`` leaves the
        last message open, so that the model continues it.

        Raises:
            RequestError: the messages are malformed (``param`` names the field) or the template refuses them.
            TemplateError: the template is broken, or exceeded its time or memory limit.
        """
        source = template.source(with_tools=bool(tools))
        separator = self.separator(template, with_tools=bool(tools))
        prepared = prepare_messages(messages, keep_developer="developer" in source, separator=separator)
        if continue_final_message:
            prepared = [*prepared[:-1], {**prepared[-1], "content": prepared[-1]["content"] + _CONTINUE}]
        variables = {
            "tools": list(tools) if tools else None,
            "documents": list(documents) if documents else None,
            "add_generation_prompt": add_generation_prompt and not continue_final_message,
            **_checked(extra or {}),
        }
        try:
            text, swap = self._efforts.render(
                source,
                variables,
                lambda chosen: self._first_accepted(template, source, foldings(prepared), chosen),
            )
        except TemplateRefusedError as exc:
            if extra:
                exc.hint += f", or change its variables: {', '.join(sorted(extra))}"
            raise
        except RecursionError as exc:
            raise RequestError(
                "the messages or variables are nested too deeply",
                param="messages",
                hint="send flatter objects",
            ) from exc
        return swap.reveal(_up_to_mark(text) if continue_final_message else text)

    def separator(self, template: ChatTemplate, *, with_tools: bool) -> Separator:
        """Return a function that finds what the template puts between the parts of a role's message.

        `prepare_messages` calls it; it renders the template on the first call for a role.
        """
        source = template.source(with_tools=with_tools)

        def rendered(messages: Conversation) -> str | None:
            variables = {**template.variables, "messages": messages, "add_generation_prompt": False}
            try:
                return self._render(source, variables)
            except (RequestError, TemplateError):
                return None

        def separate(role: str) -> str:
            if (source, role) not in self._separators:
                self._separators[source, role] = find_separator(rendered, role)
            return self._separators[source, role]

        return separate

    def _first_accepted(
        self, template: ChatTemplate, source: str, forms: Iterator[list[Message]], variables: dict[str, Any]
    ) -> tuple[str, LiteralSwap]:
        refusals: list[TemplateRefusedError] = []
        for messages in forms:
            inputs = {"messages": messages, **variables}
            swap = LiteralSwap(template.special_texts, source, inputs)
            try:
                return self._render(source, {**template.variables, **swap.hide(inputs)}), swap
            except TemplateRefusedError as exc:
                refusals.append(exc)
        raise refusals[0]

    def _render(self, source: str, variables: dict[str, Any]) -> str:
        try:
            packed = pack(RenderJob(source, variables, self._clock().isoformat()))
        except (OverflowError, UnicodeEncodeError) as exc:
            raise RequestError(
                f"the messages contain a value that cannot be rendered: {exc}",
                param="messages",
                hint="send valid Unicode and integers of at most 64 bits",
            ) from exc
        with self._lock:
            reply = self._exchange(packed)
        if not isinstance(reply, Failed):
            return reply.text
        reason = reply.message[:MAX_REASON_LEN]
        if reply.kind == "refused":
            raise TemplateRefusedError(
                f"the model's chat template refuses the messages: {reason}",
                param="messages",
                hint="order the messages as the template requires",
            )
        error = TemplateFailedError if reply.kind == "runtime" else TemplateError
        raise error(f"the chat template failed: {reason}", hint=_FIXES[reply.kind])

    def _exchange(self, job: bytes) -> Rendered | Failed:
        try:
            if self._process is None or not self._process.is_alive:
                self._end()
                self._process = TemplateProcess(memory_bytes=self._memory_limit_bytes)
            reply = self._process.render(job, limit_s=self._time_limit_s)
        except TimeoutError as exc:
            self._end()
            raise TemplateError(
                f"the chat template did not finish within {self._time_limit_s:g} s",
                hint="correct the model's chat template or use /v1/completions",
            ) from exc
        except WorkerLostError as exc:
            self._end()
            raise TemplateError(
                f"the process that renders the chat template was lost: {exc}", hint=_FIXES["memory"]
            ) from exc
        except BaseException:
            self._end()
            raise
        if isinstance(reply, Failed) and reply.kind == "memory":
            self._end()
        return reply

    def _end(self) -> None:
        if self._process is not None:
            self._process.end()
            self._process = None


def _checked(extra: Mapping[str, Any]) -> dict[str, Any]:
    taken = sorted(_RESERVED & extra.keys())
    if taken:
        raise RequestError(
            f"chat_template_kwargs may not set {taken[0]!r}",
            param="chat_template_kwargs",
            hint="llmd sets this variable itself; leave it out",
        )
    return dict(extra)


def _up_to_mark(text: str) -> str:
    kept, mark, _ = text.rpartition(_CONTINUE)
    if not mark:
        raise RequestError(
            "the model's chat template leaves out the last message, so it cannot be continued",
            param="messages",
            hint="end the messages with a user message",
        )
    return kept
