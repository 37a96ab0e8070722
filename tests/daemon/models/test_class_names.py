from __future__ import annotations

from llmd.models.class_names import architecture_names, named_class


def test_the_class_comes_before_the_type() -> None:
    assert architecture_names({"architectures": ["A", "B"], "model_type": "c"}) == ("A", "B")
    assert architecture_names({"architectures": [], "model_type": "c"}) == ("c",)
    assert architecture_names({"architectures": None, "model_type": "c"}) == ("c",)
    assert architecture_names({}) == ()


def test_the_first_class_is_named_and_nothing_else_is() -> None:
    assert named_class({"architectures": ["A", "B"], "model_type": "c"}) == "A"
    assert named_class({"architectures": [], "model_type": "c"}) == ""
    assert named_class({"architectures": None}) == ""
