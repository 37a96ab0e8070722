from __future__ import annotations

import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.grammar.compiler import KEPT, MAX_TEXT_LEN, GrammarCompiler
from llmd.grammar.json_schema import schema_grammar
from tests.daemon.grammar.conftest import END, VOCAB_SIZE, VOCABULARY, Allowed


def test_matchers_of_one_grammar_go_their_own_ways(compiler: GrammarCompiler, allowed: Allowed) -> None:
    first, second = (compiler.compile(Grammar("regex", "ab")) for _ in range(2))
    first.accept(b"a")
    assert (allowed(first), allowed(second)) == ([ord("b")], [ord("a")])


def test_grammars_are_kept_the_least_recently_used_goes_first() -> None:
    compiler = GrammarCompiler(VOCABULARY, VOCAB_SIZE)
    grammars = [Grammar("regex", f"a{{{n}}}") for n in range(KEPT + 1)]
    for grammar in (*grammars[:KEPT], grammars[0], grammars[KEPT]):
        compiler.compile(grammar)
    assert list(compiler._kept) == [*grammars[2:KEPT], grammars[0], grammars[KEPT]]


def test_a_grammar_that_is_too_long_is_refused_with_both_numbers(compiler: GrammarCompiler) -> None:
    with pytest.raises(GrammarError, match=f"{MAX_TEXT_LEN + 1} characters, but the limit is {MAX_TEXT_LEN}"):
        compiler.compile(Grammar("regex", "a" * (MAX_TEXT_LEN + 1)))


@pytest.mark.parametrize(
    "grammar",
    [
        Grammar("lark", "start: a\na: a a"),
        schema_grammar({"$ref": "#"}),
        schema_grammar({"allOf": [{"$ref": "#"}]}),
        Grammar("regex", "(" * 5000 + ")" * 5000),
        Grammar("lark", "start: " + "(" * 5000 + '"a"' + ")" * 5000),
        schema_grammar({"type": "strin"}),
        schema_grammar({"$ref": "http://example.org/schema"}),
        schema_grammar({"type": "string", "pattern": "(?=a)"}),
    ],
)
def test_hostile_and_broken_grammars_are_refused_on_one_line(
    compiler: GrammarCompiler, grammar: Grammar
) -> None:
    with pytest.raises(GrammarError) as caught:
        compiler.compile(grammar)
    assert len(caught.value.message) < 1000
    assert "\n" not in caught.value.message


def test_a_grammar_that_ends_nowhere_is_an_error_of_its_matcher(
    compiler: GrammarCompiler, allowed: Allowed
) -> None:
    matcher = compiler.compile(Grammar("lark", 'start: "ab" /[^\\s\\S]/'))
    assert allowed(matcher) == [ord("a")]
    assert END not in allowed(matcher)
