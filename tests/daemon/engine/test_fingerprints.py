from __future__ import annotations

from pathlib import Path

import msgspec

from llmd.api import Format, ModelPlan, Program
from llmd.engine.fingerprints import kv_fingerprint, packing_fingerprint
from llmd.models.lowering import lower
from llmd.testing.adapter_cases import adapted_model
from llmd.testing.plans import TinyModel


def test_that_of_a_gguf_file_is_not_that_of_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"weights")
    first = kv_fingerprint(tmp_path / "m.gguf", "f16", [])
    (tmp_path / "other.gguf").write_bytes(b"weights")
    assert kv_fingerprint(tmp_path / "m.gguf", "f16", []) == first
    (tmp_path / "m.gguf").write_bytes(b"WEIGHTS")
    assert kv_fingerprint(tmp_path / "m.gguf", "f16", []) != first


def test_changes_with_all_that_keys_and_values_depend_on(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    plan = TinyModel().plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    shorter = msgspec.structs.replace(program, context_len=program.context_len - 1)
    rounded = msgspec.structs.replace(program, precision="f16")
    stages = [("cpu", program)]
    first = kv_fingerprint(tmp_path, "f16", stages)
    assert kv_fingerprint(tmp_path, "f16", stages) == first
    others = [
        kv_fingerprint(tmp_path, "bf16", stages),
        kv_fingerprint(tmp_path, "f16", [("reference", program)]),
        kv_fingerprint(tmp_path, "f16", [("cpu", shorter)]),
        kv_fingerprint(tmp_path, "f16", [("cpu", rounded)]),
        kv_fingerprint(tmp_path, "f16", stages * 2),
    ]
    (tmp_path / "model.safetensors").write_bytes(b"WEIGHTS")
    others.append(kv_fingerprint(tmp_path, "f16", stages))
    assert len({first, *others}) == 7


def test_adapters_change_what_keys_and_values_depend_on_but_not_packed_weights(tmp_path: Path) -> None:
    model, adapter = tmp_path / "model", tmp_path / "adapter"
    for folder in (model, adapter):
        folder.mkdir()
        (folder / "a.safetensors").write_bytes(b"weights")
    first = kv_fingerprint(model, "f16", [])
    with_one = kv_fingerprint(model, "f16", [], {"sql": str(adapter)})
    (adapter / "a.safetensors").write_bytes(b"WEIGHTS")
    assert len({first, with_one, kv_fingerprint(model, "f16", [], {"sql": str(adapter)})}) == 3
    plain, adapted = lowered(TinyModel().plan(), "q8"), lowered(adapted_model(), "q8")
    assert packing_fingerprint(model, "cpu", adapted) == packing_fingerprint(model, "cpu", plain)


def lowered(plan: ModelPlan, linear: Format) -> Program:
    return lower(plan, 0, len(plan.parts), format_of=lambda kind, _ref: linear if kind == "linear" else "f32")


def test_packed_weights_depend_on_files_device_formats_and_precision_but_on_no_setting_of_a_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    plan = TinyModel().plan()
    program, quantised = (lowered(plan, linear) for linear in ("f32", "q8"))
    shorter = msgspec.structs.replace(quantised, context_len=program.context_len - 1)
    first = packing_fingerprint(tmp_path, "cpu", quantised)
    assert packing_fingerprint(tmp_path, "cpu", shorter) == first
    others = [
        packing_fingerprint(tmp_path, "other", quantised),
        packing_fingerprint(tmp_path, "cpu", program),
        packing_fingerprint(tmp_path, "cpu", msgspec.structs.replace(quantised, precision="f16")),
    ]
    (tmp_path / "model.safetensors").write_bytes(b"WEIGHTS")
    others.append(packing_fingerprint(tmp_path, "cpu", quantised))
    assert len({first, *others}) == 5
