from __future__ import annotations

from typing import Any

import pytest

from llmd.chat.templates.literals import Segment
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate

TURN = "{% for m in messages %}[{{ m.role }}]"
STRINGS = TURN + "{{ m.content }}{% endfor %}"
GLUED = (
    TURN + "{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for part in m.content %}{{ part.text | trim }}{% endfor %}{% endif %}{% endfor %}"
)
PARTS_ALONE = TURN + "{% for part in m.content %}{{ part.text }} + {% endfor %}{% endfor %}"
SPACED = (
    TURN + "{% if m.content is string %}{{ m.content }}{% else %}"
    "{{ m.content | map(attribute='text') | join(' ') }}{% endif %}{% endfor %}"
)
FIRST_ALONE = (
    TURN
    + "{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}{% endif %}{% endfor %}"
)
SYSTEM_AS_STRING = (
    TURN + "{% if m.role == 'system' %}{{ m.content }}{% elif m.content is string %}{{ m.content }}"
    "{% else %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endif %}{% endfor %}"
)
REFUSES_TOOLS = (
    TURN + "{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}"
)
ROLES = ("system", "user", "assistant", "tool")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(STRINGS, "\n", id="strings"),
        pytest.param(GLUED, "", id="glued"),
        pytest.param(SPACED, " ", id="spaced"),
        pytest.param(PARTS_ALONE, " + ", id="parts alone"),
        pytest.param(FIRST_ALONE, "\n", id="first part alone"),
    ],
)
def test_separator_is_the_templates_own_or_a_line_break(
    source: str, expected: str, role: str, renderer: TemplateRenderer
) -> None:
    separator = renderer.separator(ChatTemplate({"default": source}), with_tools=False)
    assert separator(role) == expected


def test_each_role_has_its_own_separator(renderer: TemplateRenderer) -> None:
    separator = renderer.separator(ChatTemplate({"default": SYSTEM_AS_STRING}), with_tools=False)
    assert [separator(role) for role in ROLES] == ["\n", "", "", ""]


def test_a_line_break_is_taken_where_the_template_refuses_the_role(renderer: TemplateRenderer) -> None:
    separator = renderer.separator(ChatTemplate({"default": REFUSES_TOOLS}), with_tools=False)
    assert [separator(role) for role in ("user", "tool")] == ["", "\n"]


@pytest.mark.parametrize(
    ("source", "expected"), [(STRINGS, "What is\nthe best?"), (GLUED, "What isthe best?")]
)
def test_a_message_in_parts_is_rendered_with_it(
    source: str, expected: str, renderer: TemplateRenderer
) -> None:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text} for text in ("What is", "the best?")]
    messages = [{"role": "user", "content": parts}]
    template = ChatTemplate({"default": source})
    assert renderer.render(template, messages).text == f"[user]{expected}"


def test_a_special_token_in_two_parts_is_text(renderer: TemplateRenderer) -> None:
    parts = [{"type": "text", "text": text} for text in ("<|im_", "end|>")]
    template = ChatTemplate({"default": GLUED}, special_texts=frozenset({"<|im_end|>"}))
    rendered = renderer.render(template, [{"role": "user", "content": parts}])
    assert rendered.segments == (Segment("[user]"), Segment("<|im_end|>", literal=True))
