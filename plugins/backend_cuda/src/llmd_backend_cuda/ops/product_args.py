"""What the kernels of products are called with."""

from __future__ import annotations

import ctypes

from llmd_backend_cuda.matrices import MatrixArgs

MATRICES = 4
"""Most matrices of a launch."""


class RowsArgs(ctypes.Structure):
    """``struct Rows`` of ``kernels/rows.cuh``."""

    _fields_ = (
        ("x", ctypes.c_void_p),
        ("chosen", ctypes.c_void_p),
        ("width", ctypes.c_int32),
        ("norm", ctypes.c_int32),
        ("gain", ctypes.c_void_p),
        ("eps", ctypes.c_float),
        ("offset", ctypes.c_float),
        ("count", ctypes.c_void_p),
    )


class OutputArgs(ctypes.Structure):
    """``struct Output`` of ``kernels/rows.cuh``."""

    _fields_ = (
        ("out", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("residual", ctypes.c_void_p),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
        ("threshold", ctypes.c_float),
        ("limit", ctypes.c_float),
        ("activation", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("tiles", ctypes.c_int32),
    )


class ExpertGateArgs(ctypes.Structure):
    """``struct ExpertGate`` of ``kernels/experts.cuh``."""

    _fields_ = (
        ("limit", ctypes.c_float),
        ("offset", ctypes.c_float),
        ("activation", ctypes.c_int32),
    )


class GemvArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/gemv.cu``."""

    _fields_ = (
        ("x", RowsArgs),
        ("num_rows", ctypes.c_int32),
        ("num_items", ctypes.c_int32),
        ("outputs", OutputArgs * MATRICES),
        ("matrices", MatrixArgs * MATRICES),
        ("groups", ctypes.c_void_p),
        ("gate", ExpertGateArgs),
        ("heads", ctypes.c_int32),
        ("blocks", ctypes.c_void_p),
    )


class GemmArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/gemm.cu``."""

    _fields_ = (
        ("x", ctypes.c_void_p),
        ("num_rows", ctypes.c_int32),
        ("num_columns", ctypes.c_int32),
        ("partials", ctypes.c_void_p),
        ("outputs", OutputArgs * MATRICES),
        ("matrices", MatrixArgs * MATRICES),
        ("groups", ctypes.c_void_p),
        ("heads", ctypes.c_int32),
        ("blocks", ctypes.c_void_p),
    )


class RoundArgs(ctypes.Structure):
    """``struct Args`` of ``kernels/round_rows.cu``."""

    _fields_ = (
        ("x", RowsArgs),
        ("out", ctypes.c_void_p),
        ("padded_width", ctypes.c_int32),
        ("in_product_order", ctypes.c_int32),
        ("group", ctypes.c_int32),
    )
