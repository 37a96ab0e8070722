from __future__ import annotations

import pytest

from llmd.api.errors import ConfigError
from llmd.registry.modelfile import is_go_template, read_modelfile

CHARACTER = """# A character
FROM qwen3:0.6b
PARAMETER temperature 1
parameter num_ctx 4096
SYSTEM You are Mario from Super Mario Bros. Answer as Mario, the assistant, only.
"""
CODER = '''FROM ./coder.Q4_K_M.gguf

PARAMETER stop "<|im_start|>"
PARAMETER stop "<|im_end|>"
PARAMETER top_p 0.9
TEMPLATE """{{ if .System }}<|im_start|>system
{{ .System }}<|im_end|>
{{ end }}<|im_start|>user
{{ .Prompt }}<|im_end|>
<|im_start|>assistant
"""
LICENSE """
Apache License
Version 2.0
"""
'''
SHOTS = '''FROM llama3.2
SYSTEM """
You answer with yes or no.
Nothing else.
"""
MESSAGE user Is Toronto in Canada?
MESSAGE assistant yes
MESSAGE user """Is Sacramento
in Canada?"""
MESSAGE assistant "no"
'''
ADAPTED = """REQUIRES 0.14.0
FROM mistral
ADAPTER ./adapter
PARAMETER seed 42
PARAMETER use_mmap false
"""
JINJA = '''FROM guide
TEMPLATE """{% for m in messages %}{{ m.content }}{% endfor %}"""
PARAMETER num_predict 12
LICENSE MIT
LICENSE Apache-2.0
'''


def test_a_system_prompt_and_options() -> None:
    found = read_modelfile(CHARACTER)
    assert found.fields == {
        "from": "qwen3:0.6b",
        "parameters": {"temperature": 1, "num_ctx": 4096},
        "system": "You are Mario from Super Mario Bros. Answer as Mario, the assistant, only.",
    }


def test_several_stops_and_texts_of_several_lines() -> None:
    found = read_modelfile(CODER)
    assert found.base == "./coder.Q4_K_M.gguf"
    assert found.parameters == {"stop": ["<|im_start|>", "<|im_end|>"], "top_p": 0.9}
    assert [CODER.splitlines()[line - 1].split()[1] for line in found.lines.values()] == ["stop", "top_p"]
    assert found.template.startswith("{{ if .System }}<|im_start|>system\n{{ .System }}")
    assert found.template.endswith("<|im_start|>assistant\n")
    assert found.licenses == ["\nApache License\nVersion 2.0\n"]
    assert is_go_template(found.template)


def test_messages_in_their_order() -> None:
    found = read_modelfile(SHOTS)
    assert found.system == "\nYou answer with yes or no.\nNothing else.\n"
    assert [(one["role"], one["content"]) for one in found.messages] == [
        ("user", "Is Toronto in Canada?"),
        ("assistant", "yes"),
        ("user", "Is Sacramento\nin Canada?"),
        ("assistant", "no"),
    ]


def test_adapters_and_versions_are_read() -> None:
    found = read_modelfile(ADAPTED)
    assert found.requires == "0.14.0"
    assert found.fields["adapters"] == {"./adapter": ""}
    assert found.parameters == {"seed": 42, "use_mmap": False}


def test_jinja_is_no_go_template() -> None:
    found = read_modelfile(JINJA)
    assert not is_go_template(found.template)
    assert found.licenses == ["MIT", "Apache-2.0"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "names no model"),
        ("FROM a\nSING loud", "Modelfile:2: SING is not one of FROM"),
        ("FROM a\nwords", "Modelfile:2: 'words' is no command with a value"),
        ('FROM a\nSYSTEM """never\nended', 'Modelfile:2: the text has no end (end it with """)'),
        ("FROM a\nPARAMETER temperature", "Modelfile:2: the parameter temperature has no value"),
        ("FROM a\nMESSAGE robot hi", "Modelfile:2: a message has a role"),
    ],
)
def test_what_cannot_be_read_names_its_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read_modelfile(text, "Modelfile")
    assert says in str(raised.value)
