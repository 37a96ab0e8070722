from __future__ import annotations

import msgspec

from llmd.api.kv_checks import missing_kv_dtype
from llmd.builtin.reference.device import ReferenceDevice
from llmd.models.lowering import lower
from llmd.testing.plans import TinyModel


def test_a_type_of_keys_that_a_device_or_a_latent_group_lacks_is_named() -> None:
    info, plan = ReferenceDevice().info, TinyModel().plan()
    program = lower(plan, 0, len(plan.parts), format_of=lambda _kind, _ref: "f32")
    assert missing_kv_dtype(info, program, "int8") == []
    few = msgspec.structs.replace(info, kv_dtypes=("f32", "f16"))
    (refusal,) = missing_kv_dtype(few, program, "bf16")
    assert (refusal.what, refusal.reason) == ("KV cache as bf16", "it supports f32, f16")
    latent = msgspec.structs.replace(program.groups[0], kind="latent", value_dim=4)
    kept = msgspec.structs.replace(program, groups=(latent, *program.groups[1:]))
    assert missing_kv_dtype(info, kept, "bf16") == []
    (refusal,) = missing_kv_dtype(info, kept, "int8")
    assert refusal.reason == "latent attention keeps f32, f16, bf16"
    elsewhere = msgspec.structs.replace(latent, layers=())
    assert missing_kv_dtype(info, msgspec.structs.replace(program, groups=(elsewhere,)), "int8") == []
