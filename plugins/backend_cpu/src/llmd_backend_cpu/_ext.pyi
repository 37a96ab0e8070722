from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


def version() -> str:
    """Version of the distribution that this module was built from."""

def available_isas() -> list[str]:
    """Instruction sets that this machine can run, the fastest first."""

def compare(isa: str, placements: Sequence[tuple[int, Sequence[int]]], spin_us: int, num_bytes: int, budget_s: float) -> list[tuple[float, float]]:
    """
    Decode in bytes/s and prefill in operations/s of each placement: threads and their processors.
    """

class Device:
    """A pool of threads and the kernels of an instruction set."""

    def __init__(self, isa: str, threads: int, spin_us: int, processors: Sequence[int] = []) -> None:
        """
        ``processors`` are those that the threads stay on, one for each; empty: anywhere.
        """

    def measure(self, budget_s: float) -> tuple[float, float, float, float, float, float]:
        """
        (read, decode f32, decode bf16, decode q8, decode q4) in bytes/s, and prefill in operations/s.
        """

class Weights:
    """The weights of a program, added in the order of Program.weights."""

    def __init__(self, device: Device, hidden_size: int, vocab_size: int, context_len: int, hidden_in: int, hidden_out: int, slot_widths: Sequence[int], groups: Sequence[tuple[int, int, int, int]], ropes: Sequence[tuple[Sequence[float], float]], records: Sequence[int], floats: Sequence[float], rounds: bool) -> None:
        """
        ``groups`` are (layers, kv_heads, head_dim, window or 0), ``ropes`` (inv_freq, factor); slots are -1 for none.
        """

    def add_matrix(self, format: str, data: NDArray[numpy.float32] | NDArray[numpy.uint16]) -> None:
        """Use a plain matrix where it lies."""

    def add_vector(self, format: str, data: NDArray[numpy.float32] | NDArray[numpy.uint16]) -> None:
        """Widen a vector to float32."""

    def add_integers(self, rows: int, cols: int, group_size: int, coarse_size: int, bits: int, zero: int, has_minimum: bool, wide_scales: bool, book: Sequence[int], in_int8: bool, outliers: int) -> None:
        """
        Add a matrix of integer codes, which is packed or read once all weights are added.
        """

    def packed_bytes(self) -> int:
        """Bytes of all integer matrices as they are packed."""

    def drop_strips(self) -> None:
        """
        Once all weights are added: pack none by input besides, which takes less memory and more time.
        """

    def allocate_panels(self) -> None:
        """Make room for all integer matrices."""

    def pack(self, index: int, codes: NDArray[numpy.uint8], coarse: NDArray[numpy.uint16] | NDArray[numpy.float32], fine: NDArray[numpy.int8] | None, coarse_minimums: NDArray[numpy.uint16] | NDArray[numpy.float32] | None, fine_minimums: NDArray[numpy.int8] | None, outlier_columns: NDArray[numpy.uint8] | None, outlier_residuals: NDArray[numpy.int8] | None) -> None:
        """Pack a matrix of integer codes into its panels."""

    def pack_blocks(self, index: int, format: str, blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> bool:
        """
        Pack a matrix from the blocks of a GGUF file, one row after another; whether all its scales are finite.
        """

    def read_packed(self, path: str) -> bool:
        """Fill all panels from a file; whether it could be used."""

    def map_packed(self, path: str, any_pages: bool) -> bool:
        """
        Use the panels of a file where they lie, with no room made for them; whether it could be used: where it is not in huge pages, only if it may be in any.
        """

    def write_packed(self, path: str) -> None:
        """Keep all panels in a file, unless `stop_writing` is called meanwhile."""

    def stop_writing(self) -> None:
        """End `write_packed` early; it then leaves no file."""

    def read_factors(self) -> int:
        """
        Read what steps multiply by once, as fast as the machine can; returns the bytes.
        """

    def kv_block_bytes(self, group: int, kv_dtype: str) -> int:
        """Bytes of one block of a group, all its layers included."""

class Selection:
    """The rows of a step that need output; keeps its arrays alive."""

    def __init__(self, rows: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_factors: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], edit_biases: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], masked: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], temperatures: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], targets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], raw_top: int) -> None: ...

class Stage:
    """The weights of a program with KV pools and step buffers."""

    def __init__(self, weights: Weights, blocks: Sequence[int], max_rows: int, max_sequences: int, max_outputs: int, num_candidates: int, kv_dtype: str) -> None: ...

    def add_ticket(self, hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], raw: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], edited: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], edited_values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], raw_values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], raw_logsumexp: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], edited_logsumexp: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], edited_entropy: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], edited_deviation: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], num_allowed: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], target_raw: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], top_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], top_raw: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Add a ticket, numbered from 0: the places of its results, which the caller keeps alive.
        """

    def submit(self, ticket: int, token_ids: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], row_offsets: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], block_tables: Sequence[Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)]], copies: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)], feed: int, hidden: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, selection: Selection | None, token_types: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """Run a whole step on all threads."""

    def apply_masks(self, ticket: int, masks: Annotated[NDArray[numpy.uint32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Finish the masked rows of a ticket."""

    def read_blocks(self, group: int, blocks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], contents: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Copy what blocks of a KV group hold to the rows of ``contents``."""

    def write_blocks(self, group: int, blocks: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], contents: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """The reverse of ``read_blocks``."""

def quantize_eight_bits(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], scales: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')], columns: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu')], residuals: Annotated[NDArray[numpy.int8], dict(shape=(None, None, None), order='C', device='cpu')]) -> bool:
    """
    Fill the arrays with what the bytes of plain weights become, scales as the bits of float16; return whether all
    are within the format.
    """

def quantize_symmetric(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, bits: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], scales: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """As `quantize_eight_bits`, for few bits."""

def quantize_with_minimums(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, bits: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], scales: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')], minimums: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """As `quantize_eight_bits`, for few bits."""

def quantize_bytes(weights: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], format: str, group_size: int, bits: int, fine_bits: int, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], coarse: Annotated[NDArray[numpy.uint16], dict(shape=(None, None), order='C', device='cpu')], fine_scales: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], fine_minimums: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """As `quantize_eight_bits`, for few bits in int8."""
