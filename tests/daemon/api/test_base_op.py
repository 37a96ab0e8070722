from __future__ import annotations

from llmd.api import Add, Embed, Gate, Head, TensorRef

A, B = TensorRef("a", (4, 4)), TensorRef("b", (4,))


def test_values_and_tensors_are_those_of_the_named_fields() -> None:
    assert (Add("p", "q", "r").reads, Add("p", "q", "r").writes) == (("p", "q"), ("r",))
    assert (Gate("x", "g", "y").reads, Gate("x", "g", "y").tensors) == (("x", "g"), ())
    assert (Embed("h", A).reads, Embed("h", A).tensors) == ((), (A,))
    assert (Head("x", A).writes, Head("x", A).tensors, Head("x", A, bias=B).tensors) == (
        (),
        (A, None),
        (A, B),
    )
