"""Answers with several calls in the form of each family, written by hand after its chat template and its
documentation: no model generated them.

Each calls one tool twice and another once, with text before and between the calls. Arguments have nested
values, quotation marks, brackets and characters of several scripts. Models rarely write text between calls;
Llama 3, Phi-4 mini and Llama 4 have no form for it. tests/golden/test_real_answers.py has answers that the
templates themselves write.
"""

from __future__ import annotations

from typing import Any

from tests.daemon.builtin.parsers.readings import Call

BEFORE, BETWEEN = "I ask [twice], {both} <b>now</b>: 天気は?", "Then – ok –"
TOKYO = '{"city": "東京 \\"駅\\"", "days": 3, "at": [{"x": [35.7, -1e2, null]}, {}, "}]", true]}'
ZURICH = '{"city": "Zürich, {a}", "at": {"é": {"deep": [[], [false]]}}}'
WITHOUT_TEXT: list[Any] = [
    ("get_weather", {"city": '東京 "駅"', "days": 3, "at": [{"x": [35.7, -100.0, None]}, {}, "}]", True]}),
    ("get_weather", {"city": "Zürich, {a}", "at": {"é": {"deep": [[], [False]]}}}),
    ("now", {}),
]
"""The calls, with their arguments."""
EXPECTED: list[Any] = [BEFORE, WITHOUT_TEXT[0], BETWEEN, *WITHOUT_TEXT[1:]]
"""The calls and the text before and between them."""


def _object(arguments: str, key: str = "arguments", name: str = "get_weather") -> str:
    return f'{{"name": "{name}", "{key}": {arguments}}}'


def _hermes(arguments: str, name: str = "get_weather") -> str:
    return f"<tool_call>\n{_object(arguments, name=name)}\n</tool_call>"


def _kimi(index: int, arguments: str, name: str = "get_weather") -> str:
    call = f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
    return f"{call}{arguments}<|tool_call_end|>"


def _deepseek_v3(arguments: str, name: str = "get_weather") -> str:
    call = f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n"
    return f"{call}```json\n{arguments}\n```<｜tool▁call▁end｜>"


def _deepseek_v31(arguments: str, name: str = "get_weather") -> str:
    return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>"


def _gemma(begin: str, end: str, quote: str) -> str:
    tokyo = f'city:{quote}東京 "駅"{quote},days:3,at:[{{x:[35.7,-1e2,null]}},{{}},{quote}}}]{quote},true]'
    zurich = f"city:{quote}Zürich, {{a}}{quote},at:{{é:{{deep:[[],[false]]}}}}"
    calls = [f"{begin}call:{name}{{{one}}}{end}" for name, one in _named(tokyo, zurich, "")]
    return f"{BEFORE}{calls[0]}{BETWEEN}{''.join(calls[1:])}"


def _named(first: str, second: str, third: str) -> list[Call]:
    return [("get_weather", first), ("get_weather", second), ("now", third)]


QWEN3_CODER = f"""\
{BEFORE}
<tool_call>
<function=get_weather>
<parameter=city>
東京 "駅"
</parameter>
<parameter=days>
3
</parameter>
<parameter=at>
[{{"x": [35.7, -1e2, null]}}, {{}}, "}}]", true]
</parameter>
</function>
</tool_call>
{BETWEEN}
<tool_call>
<function=get_weather>
<parameter=city>
Zürich, {{a}}
</parameter>
<parameter=at>
{{"é": {{"deep": [[], [false]]}}}}
</parameter>
</function>
</tool_call>
<tool_call>
<function=now>
</function>
</tool_call>"""
GLM = f"""\
{BEFORE}
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>東京 "駅"</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
<arg_key>at</arg_key>
<arg_value>[{{"x": [35.7, -1e2, null]}}, {{}}, "}}]", true]</arg_value>
</tool_call>
{BETWEEN}
<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Zürich, {{a}}</arg_value>
<arg_key>at</arg_key>
<arg_value>{{"é": {{"deep": [[], [false]]}}}}</arg_value>
</tool_call>
<tool_call>now
</tool_call>"""
DSML = f"""\
{BEFORE}

<｜DSML｜function_calls>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">東京 "駅"</｜DSML｜parameter>
<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
<｜DSML｜parameter name="at" string="false">[{{"x": [35.7, -1e2, null]}}, {{}}, "}}]", true]</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>
{BETWEEN}
<｜DSML｜function_calls>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">Zürich, {{a}}</｜DSML｜parameter>
<｜DSML｜parameter name="at" string="false">{{"é": {{"deep": [[], [false]]}}}}</｜DSML｜parameter>
</｜DSML｜invoke>
<｜DSML｜invoke name="now">
</｜DSML｜invoke>
</｜DSML｜function_calls>"""

LISTED = f"[{_object(ZURICH)}, {_object('{}', name='now')}]"
LONG: dict[str, str] = {
    "deepseek_v3": (
        f"{BEFORE}<｜tool▁calls▁begin｜>{_deepseek_v3(TOKYO)}<｜tool▁calls▁end｜>{BETWEEN}"
        f"<｜tool▁calls▁begin｜>{_deepseek_v3(ZURICH)}\n{_deepseek_v3('{}', 'now')}<｜tool▁calls▁end｜>"
    ),
    "deepseek_v31": (
        f"{BEFORE}<｜tool▁calls▁begin｜>{_deepseek_v31(TOKYO)}<｜tool▁calls▁end｜>{BETWEEN}"
        f"<｜tool▁calls▁begin｜>{_deepseek_v31(ZURICH)}{_deepseek_v31('{}', 'now')}<｜tool▁calls▁end｜>"
    ),
    "deepseek_v32": DSML,
    "deepseek_v4": DSML.replace("function_calls", "tool_calls"),
    "functiongemma": _gemma("<start_function_call>", "<end_function_call>", "<escape>"),
    "gemma4": _gemma("<|tool_call>", "<tool_call|>", '<|"|>'),
    "glm45": GLM,
    "granite": f"{BEFORE}\n<|tool_call|>[{_object(TOKYO)}]\n{BETWEEN}\n<|tool_call|>{LISTED}",
    "hermes": f"{BEFORE}\n{_hermes(TOKYO)}\n{BETWEEN}\n{_hermes(ZURICH)}\n{_hermes('{}', 'now')}",
    "kimi_k2": (
        f"{BEFORE}<|tool_calls_section_begin|>{_kimi(0, TOKYO)}<|tool_calls_section_end|>{BETWEEN}"
        f"<|tool_calls_section_begin|>{_kimi(1, ZURICH)}{_kimi(2, '{}', 'now')}<|tool_calls_section_end|>"
    ),
    "mistral": f"{BEFORE}[TOOL_CALLS][{_object(TOKYO)}]{BETWEEN}[TOOL_CALLS]{LISTED}",
    "mistral_v11": (
        f"{BEFORE}[TOOL_CALLS]get_weather[ARGS]{TOKYO}{BETWEEN}"
        f"[TOOL_CALLS]get_weather[CALL_ID]VvvODy9mT[ARGS]{ZURICH}[TOOL_CALLS]now[ARGS]{{}}"
    ),
    "nemotron_json": (
        f"{BEFORE}\n<TOOLCALL>[{_object(TOKYO)}]</TOOLCALL>\n{BETWEEN}\n<TOOLCALL>{LISTED}</TOOLCALL>"
    ),
    "qwen3_coder": QWEN3_CODER,
}
"""By parser."""
LONG_WITHOUT_TEXT: dict[str, str] = {
    "llama3_json": "; ".join(_object(one, "parameters", name) for name, one in _named(TOKYO, ZURICH, "{}")),
    "phi4_mini_json": f"<|tool_call|>[{_object(TOKYO)}, {LISTED[1:]}<|/tool_call|>",
    "pythonic": (
        "[get_weather(city='東京 \"駅\"', days=3, at=[{'x': [35.7, -1e2, None]}, {}, '}]', True]), "
        "get_weather(city='Zürich, {a}', at={'é': {'deep': [[], [False]]}}), now()]"
    ),
}
"""By parser, of those whose answers have either text or calls."""
