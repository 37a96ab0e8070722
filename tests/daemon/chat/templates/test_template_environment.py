from __future__ import annotations

from typing import Any

import pytest
from jinja2.exceptions import SecurityError

from llmd.chat.templates.render_messages import RenderJob
from llmd.chat.templates.template_environment import RefusedByTemplateError, TemplateSandbox


def render(source: str, **variables: Any) -> str:
    return TemplateSandbox().render(RenderJob(source, {"messages": [], **variables}, "2026-02-03T04:05:06"))


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ messages.__class__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__self__ }}",
        "{{ messages | map(attribute='__class__') | join }}",
        "{{ messages | attr('__class__') }}",
    ],
)
def test_attributes_behind_the_sandbox_are_not_seen(source: str) -> None:
    assert not render(source, messages=[1])


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ (messages | map(attribute='__class__') | list)[0].mro() }}",
        "{{ cycler.__init__.__globals__.os }}",
        "{{ messages.append(1) }}",
        "{{ first.update({'role': 'system'}) }}",
        "{{ '{0.__class__.__mro__}'.format(messages) }}",
    ],
)
def test_reaching_further_or_changing_the_input_is_refused(source: str) -> None:
    first = {"role": "user"}
    with pytest.raises(SecurityError):
        render(source, messages=[first], first=first)
    assert first == {"role": "user"}


def test_template_cannot_import_or_include() -> None:
    with pytest.raises(TypeError, match="no loader"):
        render("{% include '/etc/passwd' %}")


def test_json_keeps_text_and_order() -> None:
    value = {"b": "<é>&'", "a": [1, None, True]}
    assert render("{{ v | tojson }}", v=value) == '{"b": "<é>&\'", "a": [1, null, true]}'
    assert (
        render("{{ v | tojson(true, sort_keys=true) }}", v=value)
        == '{"a": [1, null, true], "b": "<\\u00e9>&\'"}'
    )
    assert render("{{ [1] | tojson(indent=2) }}") == "[\n  1\n]"
    assert render("{{ [1, 2] | tojson(separators=(',', ':')) }}") == "[1,2]"


def test_blocks_leave_no_line_of_their_own() -> None:
    assert render("a\n  {% if true %}\n  b\n  {% endif %}\nc") == "a\n  b\nc"


def test_loop_controls_and_generation_blocks_are_understood() -> None:
    source = "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}"
    assert render(source) == "02"
    assert render("{% generation %}a{% set x = 1 %}{% endgeneration %}{{ x is defined }}") == "aFalse"


def test_time_is_the_one_given() -> None:
    assert render("{{ strftime_now('%d %b %Y %H:%M') }}") == "03 Feb 2026 04:05"


def test_refusal_of_a_template_is_told_apart() -> None:
    with pytest.raises(RefusedByTemplateError, match="no tools"):
        render("{{ raise_exception('no tools') }}")


def test_template_that_loops_over_parts_gets_parts() -> None:
    messages = [{"role": "user", "content": "hi"}]
    loops = "{% for m in messages %}{% for p in m['content'] %}[{{ p.type }}:{{ p.text }}]{% endfor %}{% endfor %}"
    asks = "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% endfor %}{% endif %}{% endfor %}"
    assert render(loops, messages=messages) == "[text:hi]"
    assert render(asks, messages=messages) == "hi"
