// Python bindings for the weights of a program.

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings.hpp"
#include "kv_pools.hpp"
#include "weights.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

llmd::Format plain_format(const std::string& name) {
    if (name == "f32") return llmd::Format::kF32;
    if (name == "f16") return llmd::Format::kF16;
    if (name == "bf16") return llmd::Format::kBF16;
    throw std::invalid_argument("unknown plain format " + name);
}

void require_format(const AnyIn& data, llmd::Format format) {
    const bool fits = format == llmd::Format::kF32 ? data.dtype() == nb::dtype<float>()
                                                   : data.dtype() == nb::dtype<uint16_t>();
    require(fits, "the dtype of a weight must match its format");
}

using Group = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;

llmd::Program make_program(int64_t hidden_size, int64_t vocab_size, int64_t context_len, int64_t hidden_in,
                           int64_t hidden_out, std::vector<int64_t> slot_widths,
                           const std::vector<Group>& groups,
                           const std::vector<std::pair<std::vector<double>, double>>& ropes,
                           const std::vector<int64_t>& records, const std::vector<double>& floats,
                           bool rounds) {
    llmd::Program program{hidden_size, vocab_size, context_len, hidden_in, hidden_out, std::move(slot_widths),
                          {},          {},         {}};
    for (const auto& [layers, kv_heads, head_dim, window, state_bytes, latent_dim, stride] : groups) {
        program.groups.push_back({layers, kv_heads, head_dim, window, state_bytes, latent_dim, stride});
    }
    for (const auto& [inv_freq, factor] : ropes) program.ropes.push_back({inv_freq, factor});
    program.ops = llmd::parse_ops(records, floats);
    program.rounds = rounds;
    return program;
}

void add_matrix(llmd::Weights& weights, const std::string& format, const AnyIn& data, bool joins) {
    require(data.ndim() == 2, "a matrix must have two axes");
    require_format(data, plain_format(format));
    weights.add_matrix(plain_format(format), length(data), length(data, 1), data.data(), joins);
}

void add_float8(llmd::Weights& weights, const In<uint8_t, 2>& codes, const In<float, 2>& scales,
                int64_t group_size, bool joins) {
    require(group_size > 0 && length(scales) == length(codes) &&
                length(scales, 1) == llmd::pieces(length(codes, 1), group_size),
            "pass a scale for each group of each row");
    llmd::Matrix matrix{llmd::Format::kFloat8, length(codes), length(codes, 1), {}, codes.data()};
    matrix.scales = scales.data();
    matrix.group_size = group_size;
    weights.add_float8(matrix, joins);
}

void add_vector(llmd::Weights& weights, const std::string& format, const AnyIn& data) {
    require(data.ndim() == 1, "a vector must have one axis");
    require_format(data, plain_format(format));
    const nb::gil_scoped_release released;
    weights.add_vector(plain_format(format), length(data), data.data());
}

// Scales or minimums of groups: coarse ones, and fine ones if there are two levels.
using Coarse = std::optional<nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;
using Fine = std::optional<In<int8_t, 2>>;

llmd::GroupScales group_scales(const Coarse& coarse, const Fine& fine, int64_t rows) {
    if (!coarse) return {};
    const bool wide = coarse->dtype() == nb::dtype<float>();
    require(wide || coarse->dtype() == nb::dtype<uint16_t>(),
            "coarse scales must be float16 bits or float32");
    require(length(*coarse) == rows && (!fine || length(*fine) == rows), "pass scales for each row");
    return {coarse->data(), wide, length(*coarse, 1), fine ? fine->data() : nullptr,
            fine ? length(*fine, 1) : 0};
}

llmd::IntegerFormat integer_format(int64_t group_size, int64_t coarse_size, int32_t bits, int32_t zero,
                                   bool has_minimum, bool wide_scales, const std::vector<int>& book,
                                   bool in_int8, int32_t outliers) {
    require(book.empty() || book.size() == 16, "a code book must have 16 values");
    llmd::IntegerFormat format{bits, zero, group_size, coarse_size, has_minimum, wide_scales, !book.empty()};
    std::copy(book.begin(), book.end(), format.book);
    format.in_int8 = in_int8;
    format.outliers = outliers;
    return format;
}

// [rows, groups, numbers per group].
template <class T>
using OfGroups = std::optional<In<T, 3>>;

template <class T>
const T* of_groups(const OfGroups<T>& values, const llmd::IntegerMatrix& matrix) {
    if (!values) return nullptr;
    require(length(*values) == matrix.rows && length(*values, 2) == llmd::kOutliers &&
                length(*values, 1) == llmd::pieces(matrix.cols, matrix.format.group_size),
            "pass outliers for each group");
    return values->data();
}

void pack(llmd::Weights& weights, int64_t index, const In<uint8_t, 2>& codes, const Coarse& coarse,
          const Fine& fine, const Coarse& coarse_minimums, const Fine& fine_minimums,
          const OfGroups<uint8_t>& outlier_columns, const OfGroups<int8_t>& outlier_residuals,
          int64_t member) {
    require(coarse.has_value(), "pass scales");
    const llmd::IntegerFormat& format = weights.matrix(index).integer;
    require(format.bf16_scales == (coarse->dtype() == nb::dtype<float>()),
            "the dtype of scales must match the format");
    require(format.has_minimum == coarse_minimums.has_value(),
            "pass minimums if the format has minimums, and only then");
    const int64_t rows = length(codes);
    llmd::IntegerMatrix matrix{rows,
                               length(codes, 1),
                               format,
                               codes.data(),
                               group_scales(coarse, fine, rows),
                               group_scales(coarse_minimums, fine_minimums, rows)};
    matrix.outlier_columns = of_groups(outlier_columns, matrix);
    matrix.outlier_residuals = of_groups(outlier_residuals, matrix);
    const nb::gil_scoped_release released;
    weights.pack(index, matrix, member);
}

bool pack_blocks(llmd::Weights& weights, int64_t index, const std::string& format,
                 const In<uint8_t, 2>& blocks, int64_t member) {
    const llmd::BlockLayout& layout = llmd::block_layout(format);
    const int64_t cols = weights.matrix(index).cols;
    require(cols % layout.len == 0 && length(blocks, 1) == layout.row_bytes(cols),
            "rows must consist of whole blocks");
    const nb::gil_scoped_release released;
    return weights.pack_blocks(index, {layout, length(blocks), cols, blocks.data()}, member);
}

// Copies a plain matrix of a cached expert, or an FP8 one with its scales.
void copy(llmd::Weights& weights, int64_t index, const AnyIn& data, const std::optional<In<float, 2>>& scales,
          int64_t group_size, int64_t member) {
    require(data.ndim() == 2, "a matrix must have two axes");
    const llmd::Format format = weights.matrix(index, member).format;
    llmd::Matrix from{format, length(data), length(data, 1), {}, data.data()};
    if (scales) {
        from.scales = scales->data();
        from.group_size = group_size;
        require(group_size > 0 && length(*scales) == from.rows && length(*scales, 1) == from.float8_groups(),
                "pass a scale for each group of each row");
    } else {
        require_format(data, format);
    }
    require(scales.has_value() == (format == llmd::Format::kFloat8), "pass scales for FP8, and only then");
    const nb::gil_scoped_release released;
    weights.copy(index, from, member);
}

llmd::ExpertCache& expert_cache(const llmd::Weights& weights) {
    require(weights.expert_cache() != nullptr, "these weights cache no experts");
    return *weights.expert_cache();
}

int64_t read_factors(const llmd::Weights& weights) {
    const nb::gil_scoped_release released;
    return weights.read_factors();
}

}  // namespace

void bind_weights(nb::module_& module) {
    nb::class_<llmd::Weights>(module, "Weights", nb::is_weak_referenceable(),
                              "The weights of a program, added in the order of Program.weights.")
        .def(
            "__init__",
            [](llmd::Weights* self, Device& device, int64_t hidden_size, int64_t vocab_size,
               int64_t context_len, int64_t hidden_in, int64_t hidden_out, std::vector<int64_t> slot_widths,
               const std::vector<Group>& groups,
               const std::vector<std::pair<std::vector<double>, double>>& ropes,
               const std::vector<int64_t>& records, const std::vector<double>& floats, bool rounds) {
                new (self) llmd::Weights(
                    make_program(hidden_size, vocab_size, context_len, hidden_in, hidden_out,
                                 std::move(slot_widths), groups, ropes, records, floats, rounds),
                    device.pool, device.kernels);
            },
            "device"_a, "hidden_size"_a, "vocab_size"_a, "context_len"_a, "hidden_in"_a, "hidden_out"_a,
            "slot_widths"_a, "groups"_a, "ropes"_a, "records"_a, "floats"_a, "rounds"_a,
            nb::keep_alive<1, 2>(),
            "``groups`` are (layers, kv_heads, head_dim, window or 0, state_bytes or 0, latent_dim or 0, "
            "stride), "
            "``ropes`` "
            "(inv_freq, "
            "factor); a missing slot is -1.")
        .def("add_matrix", add_matrix, "format"_a, "data"_a.noconvert(), "joins"_a = false,
             nb::keep_alive<1, 3>(),
             nb::sig("def add_matrix(self, format: str, data: NDArray[numpy.float32] | "
                     "NDArray[numpy.uint16], joins: bool = False) -> None"),
             "Add a plain matrix, which is used in place. If it ``joins``, it is the next of the stack that "
             "the weight before it begins.")
        .def("add_float8", add_float8, "codes"_a.noconvert(), "scales"_a.noconvert(), "group_size"_a,
             "joins"_a = false, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
             "Add a matrix of FP8 numbers (e4m3fn) and float32 scales [rows, groups], which are used in "
             "place. "
             "For ``joins`` see `add_matrix`.")
        .def("add_vector", add_vector, "format"_a, "data"_a.noconvert(),
             nb::sig("def add_vector(self, format: str, data: NDArray[numpy.float32] | "
                     "NDArray[numpy.uint16]) -> None"),
             "Add a vector, widened to float32.")
        .def(
            "add_integers",
            [](llmd::Weights& self, int64_t rows, int64_t cols, int64_t group_size, int64_t coarse_size,
               int32_t bits, int32_t zero, bool has_minimum, bool wide_scales, const std::vector<int>& book,
               bool in_int8, int32_t outliers, bool joins) {
                const llmd::IntegerFormat format = integer_format(
                    group_size, coarse_size, bits, zero, has_minimum, wide_scales, book, in_int8, outliers);
                self.add_integers(rows, cols, format, joins);
            },
            "rows"_a, "cols"_a, "group_size"_a, "coarse_size"_a, "bits"_a, "zero"_a, "has_minimum"_a,
            "wide_scales"_a, "book"_a, "in_int8"_a, "outliers"_a, "joins"_a = false,
            "Add a matrix of integer codes, to be packed or read from a file once all weights are added. For "
            "``joins`` see `add_matrix`.")
        .def("cache_experts", &llmd::Weights::cache_experts, "budget"_a, "fill"_a,
             "Before weights are added: keep at most ``budget`` bytes of experts in memory. ``fill(weights, "
             "members)`` packs or copies the matrices of experts that a step needs.")
        .def(
            "add_absent",
            [](llmd::Weights& self, const std::string& format, int64_t rows, int64_t cols, int64_t group_size,
               bool joins) {
                const bool scaled = format == "fp8";
                self.add_absent(scaled ? llmd::Format::kFloat8 : plain_format(format), rows, cols,
                                scaled ? group_size : 0, joins);
            },
            "format"_a, "rows"_a, "cols"_a, "group_size"_a, "joins"_a = false,
            "Add a plain or FP8 matrix of a cached expert. For ``joins`` see `add_matrix`.")
        .def("begin_cache", &llmd::Weights::begin_cache,
             "Once all weights are added: begin to cache experts.")
        .def("copy", copy, "index"_a, "data"_a.noconvert(), "scales"_a.noconvert().none(), "group_size"_a,
             "member"_a,
             nb::sig(
                 "def copy(self, index: int, data: NDArray[numpy.float32] | NDArray[numpy.uint16] | "
                 "NDArray[numpy.uint8], scales: NDArray[numpy.float32] | None, group_size: int, member: int) "
                 "-> None"),
             "Copy a plain or FP8 matrix of a cached expert to its place.")
        .def(
            "largest_expert", [](const llmd::Weights& self) { return expert_cache(self).largest(); },
            "Return the bytes of the largest cached expert.")
        .def(
            "expert_bytes", [](const llmd::Weights& self) { return expert_cache(self).total(); },
            "Return the bytes of all cached experts together.")
        .def(
            "expert_counts",
            [](const llmd::Weights& self) {
                const llmd::ExpertCounts counts = expert_cache(self).counts();
                return std::make_tuple(counts.hits, counts.misses, counts.read_bytes, counts.held_bytes);
            },
            "Return how many experts were found in memory, how many were not, the bytes of these, and the "
            "bytes "
            "that are in memory now.")
        .def("packed_bytes", &llmd::Weights::packed_bytes, "Return the packed size of all integer matrices.")
        .def("drop_strips", &llmd::Weights::drop_strips,
             "Once all weights are added: do without strips, which takes less memory and more time.")
        .def("allocate_panels", &llmd::Weights::allocate_panels, nb::call_guard<nb::gil_scoped_release>(),
             "Allocate the panels of all integer matrices.")
        .def(
            "pack", pack, "index"_a, "codes"_a.noconvert(), "coarse"_a.noconvert(),
            "fine"_a.noconvert().none(), "coarse_minimums"_a.noconvert().none(),
            "fine_minimums"_a.noconvert().none(), "outlier_columns"_a.noconvert().none(),
            "outlier_residuals"_a.noconvert().none(), "member"_a = 0,
            nb::sig(
                "def pack(self, index: int, codes: NDArray[numpy.uint8], coarse: NDArray[numpy.uint16] | "
                "NDArray[numpy.float32], fine: NDArray[numpy.int8] | None, coarse_minimums: "
                "NDArray[numpy.uint16] | NDArray[numpy.float32] | None, fine_minimums: NDArray[numpy.int8] | "
                "None, outlier_columns: NDArray[numpy.uint8] | None, outlier_residuals: NDArray[numpy.int8] "
                "| None, member: int = 0) -> None"),
            "Pack a matrix of integer codes into its panels; ``member`` is its number in a stack.")
        .def("pack_blocks", pack_blocks, "index"_a, "format"_a, "blocks"_a.noconvert(), "member"_a = 0,
             "Pack a matrix from the blocks of a GGUF file, row after row; return whether all scales are "
             "finite.")
        .def("read_packed", &llmd::Weights::read_packed, "path"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Fill all panels from a file; return whether it could be used.")
        .def("map_packed", &llmd::Weights::map_packed, "path"_a, "any_pages"_a,
             nb::call_guard<nb::gil_scoped_release>(),
             "Use the panels in a file without copying them; return whether it could be used. A file that is "
             "not in huge pages is used only with ``any_pages``.")
        .def("write_packed", &llmd::Weights::write_packed, "path"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Write all panels to a file, unless `stop_writing` is called meanwhile.")
        .def("stop_writing", &llmd::Weights::stop_writing, "End `write_packed` early, without a file.")
        .def("read_factors", read_factors,
             "Read every weight that steps multiply by once, as fast as possible, and return the bytes.")
        .def(
            "kv_block_bytes",
            [](const llmd::Weights& self, size_t group, const std::string& dtype) {
                return llmd::kv_block_bytes(self.program.groups.at(group), kv_dtype(dtype));
            },
            "group"_a, "kv_dtype"_a, "Return the bytes of one block of a group, for all its layers.");
}
