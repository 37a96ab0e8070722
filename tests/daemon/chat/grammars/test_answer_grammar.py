from __future__ import annotations

from typing import ClassVar

import msgspec
import pytest

from llmd.api.errors import GrammarError
from llmd.api.messages import Grammar
from llmd.api.parsing import ReasoningMarks
from llmd.chat.answers.answer_formats import AnswerFormats
from llmd.chat.grammars.answer_grammar import ModelGrammars
from llmd.chat.grammars.grammar_checker import GrammarChecker
from llmd.chat.model_text import ChatPrompt, ModelText
from llmd.grammar.compiler import GrammarCompiler
from llmd.grammar.masks import MaskFiller, MaskRow
from tests.serving.model import TURN_END, TURN_START

PLAIN = ReasoningMarks("<think>", "</think>")
# Two control tokens of the tiny model serve as reasoning marks.
CONTROL = ReasoningMarks("<|im_start|>", "<s>")
YES = Grammar("choice", '["yes"]')
HELLO = ChatPrompt([{"role": "user", "content": "Hello"}])


def takes(text: ModelText, grammar: Grammar | None, ids: bytes | list[int]) -> bool:
    """Whether the grammar accepts this as a complete answer."""
    assert grammar is not None
    size = text.tokenizer.vocab_size
    matcher = GrammarCompiler(text.grammars.vocabulary, size).compile(grammar)
    masks, failed = MaskFiller(size, 1).fill([MaskRow(matcher, (TURN_END,), tuple(ids))])
    return not failed and bool(masks[0, TURN_END // 32] >> TURN_END % 32 & 1)


def test_vocabulary_has_the_bytes_of_every_token_and_knows_those_that_are_no_text(text: ModelText) -> None:
    vocabulary = text.grammars.vocabulary
    assert vocabulary.tokens[:256] == tuple(bytes([value]) for value in range(256))
    assert vocabulary.tokens[256:] == (b"<s>", b"<|im_start|>", b"<|im_end|>")
    assert vocabulary.special_ids == (256, 257, 258)
    assert vocabulary.end_ids == (TURN_END,)


def test_grammars_are_tried_by_the_checker(text: ModelText) -> None:
    with GrammarChecker() as checker:
        grammars = ModelGrammars(text.tokenizer, (TURN_END,), checker)
        assert grammars.threads is checker.threads
        grammars.check(YES)
        assert "vocabulary" in vars(grammars)
        with pytest.raises(GrammarError, match="unclosed"):
            grammars.check(Grammar("regex", "("))


def test_without_a_checker_the_engine_alone_judges(text: ModelText) -> None:
    ModelGrammars(text.tokenizer, ()).check(Grammar("regex", "("))


class TestReasoning:
    """The mask begins where the reasoning ends, whether the prompt or the model opened it."""

    thinking: ClassVar = b"well <b>\n</think>\n\n"

    @pytest.fixture
    def thinker(self, text: ModelText) -> ModelText:
        return msgspec.structs.replace(text, formats=AnswerFormats(reasoning=PLAIN))

    def test_a_model_that_does_not_reason_is_bound_at_once(self, text: ModelText) -> None:
        assert text.answer_grammar(YES, HELLO, text.encode_chat(HELLO)) is YES

    def test_the_model_may_reason_before_it_answers(self, thinker: ModelText) -> None:
        grammar = thinker.answer_grammar(YES, HELLO, thinker.encode_chat(HELLO))
        assert takes(thinker, grammar, b"<think>" + self.thinking + b"yes")
        assert takes(thinker, grammar, b"yes")
        assert not takes(thinker, grammar, b"<think>" + self.thinking + b"no")
        assert not takes(thinker, grammar, b"<think>yes")

    def test_reasoning_that_the_prompt_began_must_end(self, thinker: ModelText) -> None:
        ids = (*thinker.encode_chat(HELLO), *b"<think>\n")
        grammar = thinker.answer_grammar(YES, HELLO, ids)
        assert takes(thinker, grammar, self.thinking + b"yes")
        assert not takes(thinker, grammar, b"yes")

    def test_reasoning_that_the_prompt_closed_is_over(self, thinker: ModelText) -> None:
        ids = (*thinker.encode_chat(HELLO), *b"<think>\n\n</think>\n\n")
        assert thinker.answer_grammar(YES, HELLO, ids) is YES

    def test_an_answer_that_is_continued_goes_on_as_it_is(self, thinker: ModelText) -> None:
        messages = [*HELLO.messages, {"role": "assistant", "content": "I say "}]
        prompt = ChatPrompt(messages, add_generation_prompt=False, continue_final_message=True)
        assert thinker.answer_grammar(YES, prompt, thinker.encode_chat(prompt)) is YES

    def test_marks_that_are_control_tokens_are_told_by_their_ids(self, text: ModelText) -> None:
        marks = text.grammars.behind(YES, CONTROL, is_open=False)
        assert takes(text, marks, [TURN_START, *b"well", 256, *b"yes"])
        assert not takes(text, marks, b"<|im_start|>well<s>yes")


def test_marks_of_reasoning_that_are_one_token_are_no_text(text: ModelText) -> None:
    marks = ReasoningMarks("!", "</think>")
    grammars = ModelGrammars(text.tokenizer, (), reasoning=marks)
    assert ord("!") in grammars.vocabulary.special_ids
    assert grammars.control_ids(["!", "</think>", "<|im_end|>"]) == {"!": ord("!"), "<|im_end|>": TURN_END}


def test_budget_binds_where_the_end_of_reasoning_is_one_token(text: ModelText) -> None:
    by_token, by_text = ReasoningMarks("?", "!"), ReasoningMarks("<think>", "</think>")
    for marks, is_bound in ((by_token, True), (by_text, False)):
        grammars = ModelGrammars(text.tokenizer, (), reasoning=marks)
        grammar = grammars.behind(None, marks, is_open=True, budget=2)
        assert (grammar is not None) is is_bound
        assert grammars.behind(None, marks, is_open=True) is None
    grammars = ModelGrammars(text.tokenizer, (), reasoning=by_token)
    bound = msgspec.structs.replace(text, grammars=grammars)
    grammar = grammars.behind(None, by_token, is_open=True, budget=2)
    assert takes(bound, grammar, b"ab!c")
    assert not takes(bound, grammar, b"abc!")
