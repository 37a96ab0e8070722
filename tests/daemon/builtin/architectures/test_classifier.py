from __future__ import annotations

from typing import Any

import pytest

from llmd.api import HIDDEN, ModelPlan, UnsupportedModelError
from llmd.builtin.architectures import bert, roberta
from llmd.models.lowering import lower
from tests.golden.models import encoders


def scored(plan: ModelPlan) -> list[str]:
    """Return the tensors of the scoring part."""
    (part,) = (part for part in plan.parts if part.kind == "score")
    return [ref.name for op in part.ops for ref in op.tensors if ref is not None]


def test_bert_scores_what_its_pooler_makes_of_a_row() -> None:
    names = scored(bert.plan(encoders.bert("BertForSequenceClassification"), None))
    assert names == [
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
        "classifier.weight",
        "classifier.bias",
    ]


def test_roberta_scores_with_a_classifier_of_two_layers() -> None:
    names = scored(roberta.plan(encoders.roberta("XLMRobertaForSequenceClassification"), None))
    modules = ("classifier.dense", "classifier.out_proj")
    assert names == [f"{module}.{kind}" for module in modules for kind in ("weight", "bias")]


def test_a_score_is_all_that_leaves() -> None:
    plan = bert.plan(encoders.bert("BertForSequenceClassification"), None)
    assert plan.parts[-1].ops[-1].writes == (HIDDEN,)
    assert lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32").output_size == 1


@pytest.mark.parametrize(
    "fields",
    [{"id2label": {"0": "no", "1": "yes"}}, {"id2label": None}, {"id2label": None, "num_labels": 3}],
)
def test_other_numbers_of_labels_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedModelError, match=r"id2label is [23], .* 1 label"):
        bert.plan(encoders.bert("BertForSequenceClassification", **fields), None)


def test_one_label_may_be_said_by_its_number() -> None:
    config = encoders.bert("BertForSequenceClassification", id2label=None, num_labels=1)
    assert scored(bert.plan(config, None))
