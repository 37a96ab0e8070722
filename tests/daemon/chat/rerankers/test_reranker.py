from __future__ import annotations

import math

import pytest

from llmd.chat.rerankers.reranker import Reranker, relevance
from llmd.chat.templates.renderer import TemplateRenderer
from llmd.chat.templates.template_files import ChatTemplate

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{{ tone }}{{ add_generation_prompt }}"
)


def test_relevance_is_the_probability_among_both_answers() -> None:
    assert relevance([math.log(0.03), math.log(0.01)]) == pytest.approx(0.75)
    assert relevance([-1e6, 0.0]) == pytest.approx(0.0)
    assert relevance([0.0, -1e6]) == 1.0
    assert relevance([-3.0, -3.0]) == 0.5


def test_template_gets_instruction_query_and_document_as_messages() -> None:
    template = ChatTemplate({"default": TEMPLATE}, {"tone": "!"})
    reranker = Reranker(template, 1, 2, "Find", add_generation_prompt=True)
    with TemplateRenderer() as renderer:
        assert reranker.render(renderer, "q", "d").text == "system=Find;query=q;document=d;!True"
        assert reranker.render(renderer, "q", "d", "Look").text == "system=Look;query=q;document=d;!True"
        assert reranker.render(renderer, "q", "d", "").text == "query=q;document=d;!True"
    assert reranker.answer_ids == (1, 2)
