from __future__ import annotations

import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from tests.daemon.grammar.conftest import Follow

# In the style of llama.cpp's own json.gbnf.
JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws   # "root" in a comment
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""


@pytest.mark.parametrize(
    ("text", "taken", "refused"),
    [
        (JSON, ['{"a": [1, -2.5, "x\\u00e9"], "b": {}}'], ["[1]", '{"a": 01}', '{"a" 1}']),
        (r'root ::= "\u00e9\x41" [\x42-\x43\u00e9]', ["éAB", "éAé"], ["éAA"]),
        (r'root ::= "\U0001F600"+', ["😀", "😀😀"], [""]),
        (r'root ::= [\x5d\x5c/"]+ "\x22\x0a"', [']\\/""\n'], ["]"]),
        ('root ::= a-b aB a_b\na-b ::= "1"\naB ::= "2"\na_b ::= "3"', ["123"], ["111"]),
        ('root ::= start\nstart ::= "x" root | "y"', ["y", "xxy"], ["x"]),
        ('root ::= [a-c]{2,3} "!"', ["ab!", "abc!"], ["a!", "abca!"]),
        ('root ::= ( "a" | ) "b"', ["ab", "b"], ["a"]),
        ('root ::= "a" .', ["ax", "aé"], ["a"]),
    ],
)
def test_means_the_same_as_in_llama_cpp(
    follow: Follow, text: str, taken: list[str], refused: list[str]
) -> None:
    grammar = Grammar("gbnf", text)
    assert [one for one in taken if not follow(grammar, one)] == []
    assert [one for one in refused if follow(grammar, one)] == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('answer ::= "a"', "no rule root"),
        ("root ::= b", "the rule b, which it does not define"),
        ('root ::= "a', "cannot be read"),
        ("root ::= ]", "cannot be read"),
        (r'root ::= "\ud800"', "not a character"),
        (r'root ::= "\UFFFFFFFF"', "not a character"),
    ],
)
def test_what_is_no_grammar_is_refused_with_its_reason(follow: Follow, text: str, reason: str) -> None:
    with pytest.raises(GrammarError, match=reason):
        follow(Grammar("gbnf", text), "")
