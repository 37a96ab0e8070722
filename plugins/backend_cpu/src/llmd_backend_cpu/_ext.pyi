from collections.abc import Callable, Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def version() -> str:
    """Version of the distribution that this module was built from."""

def available_isas() -> list[str]:
    """Instruction sets that this machine can run, the fastest first."""

def compare(isa: str, placements: Sequence[tuple[int, Sequence[int]]], spin_us: int, num_bytes: int, budget_s: float) -> list[tuple[float, float]]:
    """
    Return decode in bytes/s and prefill in operations/s for each placement: (threads, processors).
    """

class Device:
    """A pool of threads and the kernels of an instruction set."""

    def __init__(self, isa: str, threads: int, spin_us: int, processors: Sequence[int] = []) -> None:
        """
        ``processors`` names a logical processor to pin each thread to; empty: no pinning.
        """

class Weights:
    """The weights of a program, added in the order of Program.weights."""

    def __init__(self, device: Device, hidden_size: int, vocab_size: int, context_len: int, hidden_in: int, hidden_out: int, slot_widths: Sequence[int], groups: Sequence[tuple[int, int, int, int, int, int, int]], ropes: Sequence[tuple[Sequence[float], float]], records: Sequence[int], floats: Sequence[float], rounds: bool) -> None:
        """
        ``groups`` are (layers, kv_heads, head_dim, window or 0, state_bytes or 0, latent_dim or 0, stride), ``ropes`` (inv_freq, factor); a missing slot is -1.
        """

    def add_matrix(self, format: str, data: NDArray[numpy.float32] | NDArray[numpy.uint16], joins: bool = False) -> None:
        """
        Add a plain matrix, which is used in place. If it ``joins``, it is the next of the stack that the weight before it begins.
        """

    def add_float8(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], scales: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], group_size: int, joins: bool = False) -> None:
        """
        Add a matrix of FP8 numbers (e4m3fn) and float32 scales [rows, groups], which are used in place. For ``joins`` see `add_matrix`.
        """

    def add_vector(self, format: str, data: NDArray[numpy.float32] | NDArray[numpy.uint16]) -> None:
        """Add a vector, widened to float32."""

    def add_integers(self, rows: int, cols: int, group_size: int, coarse_size: int, bits: int, zero: int, has_minimum: bool, wide_scales: bool, book: Sequence[int], in_int8: bool, outliers: int, joins: bool = False) -> None:
        """
        Add a matrix of integer codes, to be packed or read from a file once all weights are added. For ``joins`` see `add_matrix`.
        """

    def cache_experts(self, budget: int, fill: Callable[[Sequence[int], Sequence[int]], None]) -> None:
        """
        Before weights are added: keep at most ``budget`` bytes of experts in memory. ``fill(weights, members)`` packs or copies the matrices of experts that a step needs.
        """

    def add_absent(self, format: str, rows: int, cols: int, group_size: int, joins: bool = False) -> None:
        """
        Add a plain or FP8 matrix of a cached expert. For ``joins`` see `add_matrix`.
        """

    def begin_cache(self) -> None:
        """Once all weights are added: begin to cache experts."""

    def copy(self, index: int, data: NDArray[numpy.float32] | NDArray[numpy.uint16] | NDArray[numpy.uint8], scales: NDArray[numpy.float32] | None, group_size: int, member: int) -> None:
        """Copy a plain or FP8 matrix of a cached expert to its place."""

    def largest_expert(self) -> int:
        """Return the bytes of the largest cached expert."""

    def expert_bytes(self) -> int:
        """Return the bytes of all cached experts together."""

    def expert_counts(self) -> tuple[int, int, int, int]:
        """
        Return how many experts were found in memory, how many were not, the bytes of these, and the bytes that are in memory now.
        """

    def packed_bytes(self) -> int:
        """Return the packed size of all integer matrices."""

    def drop_strips(self) -> None:
        """
        Once all weights are added: do without strips, which takes less memory and more time.
        """

    def allocate_panels(self) -> None:
        """Allocate the panels of all integer matrices."""

    def pack(self, index: int, codes: NDArray[numpy.uint8], coarse: NDArray[numpy.uint16] | NDArray[numpy.float32], fine: NDArray[numpy.int8] | None, coarse_minimums: NDArray[numpy.uint16] | NDArray[numpy.float32] | None, fine_minimums: NDArray[numpy.int8] | None, outlier_columns: NDArray[numpy.uint8] | None, outlier_residuals: NDArray[numpy.int8] | None, member: int = 0) -> None:
        """
        Pack a matrix of integer codes into its panels; ``member`` is its number in a stack.
        """

    def pack_blocks(self, index: int, format: str, blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], member: int = 0) -> bool:
        """
        Pack a matrix from the blocks of a GGUF file, row after row; return whether all scales are finite.
        """

    def read_packed(self, path: str) -> bool:
        """Fill all panels from a file; return whether it could be used."""

    def map_packed(self, path: str, any_pages: bool) -> bool:
        """
        Use the panels in a file without copying them; return whether it could be used. A file that is not in huge pages is used only with ``any_pages``.
        """

    def write_packed(self, path: str) -> None:
        """Write all panels to a file, unless `stop_writing` is called meanwhile."""

    def stop_writing(self) -> None:
        """End `write_packed` early, without a file."""

    def read_factors(self) -> int:
        """
        Read every weight that steps multiply by once, as fast as possible, and return the bytes.
        """

    def kv_block_bytes(self, group: int, kv_dtype: str) -> int:
        """Return the bytes of one block of a group, for all its layers."""

class Selection:
    """The rows of a step that need output; keeps its arrays alive."""

    def __init__(self, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_factors: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_biases: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], masked: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], temperatures: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], targets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], raw_top: int) -> None: ...

class Stage:
    """The weights of a program with KV pools and step buffers."""

    def __init__(self, weights: Weights, blocks: Sequence[int], max_rows: int, max_sequences: int, max_outputs: int, num_candidates: int, kv_dtype: str) -> None: ...

    def add_ticket(self, hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], raw: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], edited: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], edited_values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], raw_values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], raw_logsumexp: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], edited_logsumexp: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], edited_entropy: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], edited_deviation: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], num_allowed: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], target_raw: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], top_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], top_raw: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Add a ticket with the arrays for its results, which the caller keeps alive. Tickets count from 0.
        """

    def submit(self, ticket: int, token_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], row_offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block_tables: Sequence[Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]], copies: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], feed: int, hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, selection: Selection | None, token_types: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, adapters: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """Run a whole step on all threads."""

    def apply_masks(self, ticket: int, masks: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Finish the masked rows of a ticket."""

    def read_blocks(self, group: int, blocks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], contents: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Copy blocks of a KV group to the rows of ``contents``."""

    def write_blocks(self, group: int, blocks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], contents: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Copy the rows of ``contents`` to blocks of a KV group."""

def quantize_eight_bits(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], scales: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')], columns: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu')], residuals: Annotated[NDArray[numpy.int8], dict(shape=(None, None, None), order='C', device='cpu')]) -> bool:
    """
    Quantise plain weights, given as bytes, into the arrays; scales are the bits of float16. Return whether all
    weights and scales are in range.
    """

def quantize_symmetric(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, bits: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], scales: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """Like `quantize_eight_bits`, for few bits."""

def quantize_with_minimums(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, bits: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], scales: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')], minimums: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """Like `quantize_eight_bits`, for few bits."""

def quantize_bytes(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, bits: int, fine_bits: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], coarse: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')], fine_scales: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], fine_minimums: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """Like `quantize_eight_bits`, for few bits in int8."""
