from __future__ import annotations

from llmd.api.messages import Grammar
from llmd.grammar.compiler import GrammarCompiler
from tests.daemon.grammar.conftest import END, Allowed


def test_its_place_is_that_of_the_tokens_it_took(compiler: GrammarCompiler, allowed: Allowed) -> None:
    grammar = Grammar("regex", "(ab)+c")
    stepwise, replayed = compiler.compile(grammar), compiler.compile(grammar)
    for token in b"aba":
        allowed(stepwise)
        stepwise.accept([token])
    replayed.accept(list(b"aba"))
    assert allowed(stepwise) == allowed(replayed) == [ord("b")]


def test_a_token_that_does_not_fit_is_an_error(compiler: GrammarCompiler) -> None:
    matcher = compiler.compile(Grammar("regex", "ab"))
    matcher.accept([])
    before = matcher.error
    matcher.accept([ord("x")])
    after = matcher.error
    assert before is None
    assert after
    assert "\n" not in after


def test_the_end_is_no_token_of_the_text(compiler: GrammarCompiler) -> None:
    matcher = compiler.compile(Grammar("regex", "<end>"))
    matcher.accept([END])
    assert matcher.error


def test_a_fork_goes_its_own_way(compiler: GrammarCompiler, allowed: Allowed) -> None:
    matcher = compiler.compile(Grammar("regex", "(abc|bcd)"))
    forked = matcher.fork()
    matcher.accept(b"a")
    forked.accept(b"bc")
    assert (allowed(matcher), allowed(forked)) == ([ord("b")], [ord("d")])
