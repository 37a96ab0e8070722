"""A tiny RWKV-7 in torch: float32 on the CPU, one row after the other.

transformers has no RWKV-7. The equations are those of Peng et al. 2025, "RWKV-7 'Goose' with Expressive
Dynamic State Evolution" (arXiv 2503.14456), and of its authors' reference code, ``rwkv_v7_demo.py`` of
github.com/BlinkDL/RWKV-LM. Tensors have the names of fla (``fla/layers/rwkv7.py`` of github.com/fla-org).
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tests.golden.models.tiny import TinyModel
from tests.golden.tensors import as_float32, draw_tensors


class Rwkv7:
    """The model of a case with its stored weights."""

    def __init__(self, case: TinyModel) -> None:
        self.config = case.config
        self._weights = {name: torch.from_numpy(as_float32(stored)) for name, stored in draw_tensors(case)}

    @torch.no_grad()
    def logits(self, ids: list[int]) -> NDArray[np.float32]:
        """Logits ``[len(ids), vocab]`` of the whole sequence, computed afresh."""
        x = self._weights["model.embeddings.weight"][ids]
        x = self._norm(x, "model.layers.0.pre_norm")
        first: Tensor | None = None
        for layer in range(self.config["num_hidden_layers"]):
            at = f"model.layers.{layer}"
            mixed, first = self._time_mix(self._norm(x, f"{at}.attn_norm"), f"{at}.attn", first)
            x = x + mixed
            x = x + self._channel_mix(self._norm(x, f"{at}.ffn_norm"), f"{at}.ffn")
        tied = self.config["tie_word_embeddings"]
        head = self._weights["model.embeddings.weight" if tied else "lm_head.weight"]
        return (self._norm(x, "model.norm") @ head.T).numpy()

    def _time_mix(self, x: Tensor, at: str, first: Tensor | None) -> tuple[Tensor, Tensor]:
        weights, heads = self._weights, (len(x), -1, self.config["head_dim"])
        shifted = shift(x) - x
        xr, xw, xk, xv, xa, xg = (x + shifted * weights[f"{at}.x_{name}"].reshape(-1) for name in "rwkvag")
        r, k, v = (
            mix @ weights[f"{at}.{name}_proj.weight"].T for name, mix in zip("rkv", (xr, xk, xv), strict=True)
        )
        w = -functional.softplus(-self._low_rank(torch.tanh, xw, f"{at}.w_lora")) - 0.5
        if first is None:
            first = v
        else:
            v = v + (first - v) * torch.sigmoid(self._low_rank(None, xv, f"{at}.v_lora"))
        a = torch.sigmoid(self._low_rank(None, xa, f"{at}.a_lora"))
        g = self._low_rank(torch.sigmoid, xg, f"{at}.g_lora")
        kk = functional.normalize((k * weights[f"{at}.k_k"]).view(heads), dim=-1, p=2.0).view(len(x), -1)
        k = k * (1 + (a - 1) * weights[f"{at}.k_a"])
        decay = torch.exp(-torch.exp(w))
        r, k, v, decay, kk, a = (value.view(heads) for value in (r, k, v, decay, kk, a))
        out = recur(r, decay, k, v, -kk, kk * a)
        normed = functional.group_norm(
            out.reshape(len(x), -1),
            num_groups=r.shape[1],
            weight=weights[f"{at}.g_norm.weight"],
            bias=weights[f"{at}.g_norm.bias"],
            eps=self.config["head_dim"] * self.config["norm_eps"],
        )
        bonus = (r * k * weights[f"{at}.r_k"]).sum(dim=-1, keepdim=True) * v
        mixed = (normed + bonus.reshape(len(x), -1)) * g
        return mixed @ weights[f"{at}.o_proj.weight"].T, first

    def _channel_mix(self, x: Tensor, at: str) -> Tensor:
        k = x + (shift(x) - x) * self._weights[f"{at}.x_k"]
        k = torch.relu(k @ self._weights[f"{at}.key.weight"].T) ** 2
        return k @ self._weights[f"{at}.value.weight"].T

    def _low_rank(self, activation: object, x: Tensor, at: str) -> Tensor:
        low = x @ self._weights[f"{at}.lora.0.weight"].T
        low = activation(low) if callable(activation) else low
        return functional.linear(
            low, self._weights[f"{at}.lora.2.weight"], self._weights.get(f"{at}.lora.2.bias")
        )

    def _norm(self, x: Tensor, at: str) -> Tensor:
        weight, bias = self._weights[f"{at}.weight"], self._weights.get(f"{at}.bias")
        return functional.layer_norm(x, weight.shape, weight, bias, self.config["norm_eps"])


def shift(x: Tensor) -> Tensor:
    """The row before each row, zeros before the first."""
    return functional.pad(x, (0, 0, 1, -1))


def recur(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``S = S diag(w) + S a b^T + v k^T`` and ``out = S r``, with tensors ``[rows, heads, head_dim]``."""
    state = torch.zeros(*r.shape[1:], r.shape[2])
    rows = []
    for row in range(len(r)):
        removed = torch.einsum("hij,hj,hk->hik", state, a[row], b[row])
        put = torch.einsum("hi,hj->hij", v[row], k[row])
        state = state * w[row][:, None, :] + removed + put
        rows.append(torch.einsum("hij,hj->hi", state, r[row]))
    return torch.stack(rows)
