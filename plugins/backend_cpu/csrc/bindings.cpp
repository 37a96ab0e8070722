// The nanobind module llmd_backend_cpu._ext: checks dtypes, shapes and contiguity, releases the GIL, calls
// the core.
//
// Half precision and bf16 cross as uint16 bits. Arrays that the core keeps (weights, places of results) are
// kept alive by the Python face.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "benchmark.hpp"
#include "cpu_features.hpp"
#include "group_fit_bindings.hpp"
#include "stage.hpp"
#include "trial.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, int kAxes>
using In = nb::ndarray<const T, nb::ndim<kAxes>, nb::c_contig, nb::device::cpu>;
template <class T, int kAxes>
using Out = nb::ndarray<T, nb::ndim<kAxes>, nb::c_contig, nb::device::cpu>;
using AnyIn = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

int64_t length(const auto& array, size_t axis = 0) { return static_cast<int64_t>(array.shape(axis)); }

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

void require_processors(int threads, const std::vector<int>& processors) {
    require(threads > 0 && (processors.empty() || processors.size() == static_cast<size_t>(threads)),
            "there is a processor for each thread, or none");
}

// A pool of threads and the unit that they run.
struct Device {
    llmd::ThreadPool pool;
    const llmd::Kernels& kernels;

    Device(const std::string& isa, int threads, int spin_us, const std::vector<int>& processors)
        : pool((require_processors(threads, processors), threads), spin_us, processors),
          kernels(llmd::kernels_of(isa)) {}
};

llmd::Format plain_format(const std::string& name) {
    if (name == "f32") return llmd::Format::kF32;
    if (name == "f16") return llmd::Format::kF16;
    if (name == "bf16") return llmd::Format::kBF16;
    throw std::invalid_argument("no plain format is called " + name);
}

llmd::KvDtype kv_dtype(const std::string& name) {
    if (name == "f32") return llmd::KvDtype::kF32;
    if (name == "f16") return llmd::KvDtype::kF16;
    if (name == "bf16") return llmd::KvDtype::kBF16;
    if (name == "int8") return llmd::KvDtype::kInt8;
    if (name == "int4") return llmd::KvDtype::kInt4;
    throw std::invalid_argument("no KV dtype is called " + name);
}

void require_format(const AnyIn& data, llmd::Format format) {
    const bool fits = format == llmd::Format::kF32 ? data.dtype() == nb::dtype<float>()
                                                   : data.dtype() == nb::dtype<uint16_t>();
    require(fits, "a weight's dtype contradicts its format");
}

using Group = std::tuple<int64_t, int64_t, int64_t, int64_t>;

llmd::Program make_program(int64_t hidden_size, int64_t vocab_size, int64_t context_len, int64_t hidden_in,
                           int64_t hidden_out, std::vector<int64_t> slot_widths,
                           const std::vector<Group>& groups,
                           const std::vector<std::pair<std::vector<double>, double>>& ropes,
                           const std::vector<int64_t>& records, const std::vector<double>& floats) {
    llmd::Program program{hidden_size, vocab_size, context_len, hidden_in, hidden_out, std::move(slot_widths),
                          {},          {},         {}};
    for (const auto& [layers, kv_heads, head_dim, window] : groups) {
        program.groups.push_back({layers, kv_heads, head_dim, window});
    }
    for (const auto& [inv_freq, factor] : ropes) program.ropes.push_back({inv_freq, factor});
    program.ops = llmd::parse_ops(records, floats);
    return program;
}

void add_matrix(llmd::Parts& parts, const std::string& format, const AnyIn& data) {
    require(data.ndim() == 2, "a matrix has two axes");
    require_format(data, plain_format(format));
    parts.add_matrix(plain_format(format), length(data), length(data, 1), data.data());
}

void add_vector(llmd::Parts& parts, const std::string& format, const AnyIn& data) {
    require(data.ndim() == 1, "a vector has one axis");
    require_format(data, plain_format(format));
    const nb::gil_scoped_release released;
    parts.add_vector(plain_format(format), length(data), data.data());
}

// A scale or a minimum for each group: the coarse ones, and the fine ones where there are two levels.
using Coarse = std::optional<nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>>;
using Fine = std::optional<In<int8_t, 2>>;

llmd::GroupScales group_scales(const Coarse& coarse, const Fine& fine, int64_t rows) {
    if (!coarse) return {};
    const bool wide = coarse->dtype() == nb::dtype<float>();
    require(wide || coarse->dtype() == nb::dtype<uint16_t>(), "coarse scales are float16 bits or float32");
    require(length(*coarse) == rows && (!fine || length(*fine) == rows), "there are scales for each row");
    return {coarse->data(), wide, length(*coarse, 1), fine ? fine->data() : nullptr,
            fine ? length(*fine, 1) : 0};
}

llmd::IntegerFormat integer_format(int64_t group_size, int64_t coarse_size, int32_t bits, int32_t zero,
                                   bool has_minimum, bool wide_scales, const std::vector<int>& book,
                                   bool in_int8) {
    require(book.empty() || book.size() == 16, "a code book has 16 values");
    llmd::IntegerFormat format{bits, zero, group_size, coarse_size, has_minimum, wide_scales, !book.empty()};
    std::copy(book.begin(), book.end(), format.book);
    format.in_int8 = in_int8;
    return format;
}

void pack(llmd::Parts& parts, int64_t index, const In<uint8_t, 2>& codes, const Coarse& coarse,
          const Fine& fine, const Coarse& coarse_minimums, const Fine& fine_minimums) {
    require(coarse.has_value(), "there are scales");
    const llmd::IntegerFormat& format = parts.matrix(index).integer;
    require(format.bf16_scales == (coarse->dtype() == nb::dtype<float>()),
            "scales are of their format's dtype");
    require(format.has_minimum == coarse_minimums.has_value(),
            "there are minimums where the format has some");
    const int64_t rows = length(codes);
    const llmd::IntegerMatrix matrix{rows,
                                     length(codes, 1),
                                     format,
                                     codes.data(),
                                     group_scales(coarse, fine, rows),
                                     group_scales(coarse_minimums, fine_minimums, rows)};
    const nb::gil_scoped_release released;
    parts.pack(index, matrix);
}

int64_t read_factors(const llmd::Parts& parts) {
    const nb::gil_scoped_release released;
    return parts.read_factors();
}

// A selection together with the arrays that it points into.
struct SelectionArrays {
    In<int32_t, 1> rows, edit_offsets, edit_ids;
    In<float, 1> edit_factors, edit_biases;
    In<bool, 1> masked;
    In<float, 1> temperatures;
    In<int32_t, 1> targets;
    int64_t raw_top;

    void check() const {
        const int64_t count = length(rows);
        require(length(edit_offsets) == count + 1, "edit_offsets has one entry more than rows");
        require(length(edit_factors) == length(edit_ids) && length(edit_biases) == length(edit_ids),
                "edit_ids, edit_factors and edit_biases have one length");
        require(length(masked) == count && length(temperatures) == count && length(targets) == count,
                "masked, temperatures and targets have the length of rows");
        require(raw_top >= 0 && raw_top <= 20, "raw_top is 0 to 20");
    }
    llmd::Selection view() const {
        return {length(rows),       rows.data(),   edit_offsets.data(), edit_ids.data(), edit_factors.data(),
                edit_biases.data(), masked.data(), temperatures.data(), targets.data(),  raw_top};
    }
};

void add_ticket(llmd::Stage& stage, const Out<float, 2>& hidden, const Out<float, 2>& raw,
                const Out<float, 2>& edited, const Out<int32_t, 1>& ids, const Out<float, 1>& edited_values,
                const Out<float, 1>& raw_values, const Out<float, 1>& raw_logsumexp,
                const Out<float, 1>& edited_logsumexp, const Out<float, 1>& edited_entropy,
                const Out<float, 1>& edited_deviation, const Out<int32_t, 1>& num_allowed,
                const Out<float, 1>& target_raw, const Out<int32_t, 1>& top_ids,
                const Out<float, 1>& top_raw) {
    stage.add_ticket({hidden.data(), raw.data(), edited.data(), ids.data(), edited_values.data(),
                      raw_values.data(), raw_logsumexp.data(), edited_logsumexp.data(), edited_entropy.data(),
                      edited_deviation.data(), num_allowed.data(), target_raw.data(), top_ids.data(),
                      top_raw.data()});
}

void submit(llmd::Stage& stage, size_t ticket, const In<int32_t, 1>& token_ids,
            const In<int32_t, 1>& positions, const In<int32_t, 1>& row_offsets,
            const std::vector<In<int32_t, 2>>& block_tables, const In<int32_t, 2>& copies, int64_t feed,
            const std::optional<In<float, 2>>& hidden, const SelectionArrays* selection,
            const std::optional<In<int32_t, 1>>& token_types) {
    require(length(row_offsets) >= 1, "row_offsets has at least one entry");
    llmd::Step step{length(token_ids), length(row_offsets) - 1, token_ids.data(),
                    positions.data(),  row_offsets.data(),      {},
                    length(copies),    copies.data(),           token_types ? token_types->data() : nullptr};
    require(length(positions) == step.rows, "positions has the length of token_ids");
    require(!token_types || length(*token_types) == step.rows, "token_types has the length of token_ids");
    require(length(copies) == 0 || length(copies, 1) == 3, "copies are triples");
    for (const auto& table : block_tables) {
        require(length(table) == step.sequences, "block_tables have a row for each sequence");
        step.tables.push_back({table.data(), length(table, 1)});
    }
    require(!hidden || length(*hidden) == step.rows, "hidden has a row for each token");
    const float* rows = hidden ? hidden->data() : nullptr;
    const llmd::Selection view = selection != nullptr ? selection->view() : llmd::Selection{};
    const int64_t edits = selection != nullptr ? length(selection->edit_ids) : 0;
    const nb::gil_scoped_release released;
    stage.submit(ticket, std::move(step), feed, rows, selection != nullptr ? &view : nullptr, edits);
}

void apply_masks(llmd::Stage& stage, size_t ticket, const In<uint32_t, 2>& masks) {
    const nb::gil_scoped_release released;
    stage.apply_masks(ticket, masks.data(), length(masks, 1));
}

void read_blocks(llmd::Stage& stage, int64_t group, const In<int32_t, 1>& blocks,
                 const Out<uint8_t, 2>& contents) {
    require(length(contents) == length(blocks) && length(contents, 1) == stage.pools().block_bytes(group),
            "contents have a row of a block's bytes for each block");
    const nb::gil_scoped_release released;
    for (int64_t i = 0; i < length(blocks); ++i) {
        stage.pools().read(group, blocks.data()[i], contents.data() + i * length(contents, 1));
    }
}

void write_blocks(llmd::Stage& stage, int64_t group, const In<int32_t, 1>& blocks,
                  const In<uint8_t, 2>& contents) {
    require(length(contents) == length(blocks) && length(contents, 1) == stage.pools().block_bytes(group),
            "contents have a row of a block's bytes for each block");
    const nb::gil_scoped_release released;
    for (int64_t i = 0; i < length(blocks); ++i) {
        stage.pools().write(group, blocks.data()[i], contents.data() + i * length(contents, 1));
    }
}

auto compare(const std::string& isa, const std::vector<std::pair<int, std::vector<int>>>& placements,
             int spin_us, int64_t num_bytes, double budget_s) {
    std::vector<llmd::Placement> native;
    for (const auto& [threads, processors] : placements) {
        require_processors(threads, processors);
        native.push_back({threads, processors});
    }
    const nb::gil_scoped_release released;
    std::vector<std::pair<double, double>> rates;
    for (const llmd::TrialRates& one :
         llmd::compare(native, llmd::kernels_of(isa), spin_us, num_bytes, budget_s)) {
        rates.emplace_back(one.decode_bytes_per_s, one.prefill_flops_per_s);
    }
    return rates;
}

auto measure(Device& device, double budget_s) {
    const nb::gil_scoped_release released;
    const llmd::Rates rates = llmd::measure(device.pool, device.kernels, budget_s);
    return std::tuple(rates.read_bytes_per_s, rates.decode_f32_bytes_per_s, rates.decode_bf16_bytes_per_s,
                      rates.decode_q8_bytes_per_s, rates.decode_q4_bytes_per_s, rates.prefill_flops_per_s);
}

void bind_parts(nb::module_& module) {
    nb::class_<llmd::Parts>(module, "Parts",
                            "The weights of a program, added in the order of Program.weights.")
        .def(
            "__init__",
            [](llmd::Parts* self, Device& device, int64_t hidden_size, int64_t vocab_size,
               int64_t context_len, int64_t hidden_in, int64_t hidden_out, std::vector<int64_t> slot_widths,
               const std::vector<Group>& groups,
               const std::vector<std::pair<std::vector<double>, double>>& ropes,
               const std::vector<int64_t>& records, const std::vector<double>& floats) {
                new (self)
                    llmd::Parts(make_program(hidden_size, vocab_size, context_len, hidden_in, hidden_out,
                                             std::move(slot_widths), groups, ropes, records, floats),
                                device.pool, device.kernels);
            },
            "device"_a, "hidden_size"_a, "vocab_size"_a, "context_len"_a, "hidden_in"_a, "hidden_out"_a,
            "slot_widths"_a, "groups"_a, "ropes"_a, "records"_a, "floats"_a, nb::keep_alive<1, 2>(),
            "``groups`` are (layers, kv_heads, head_dim, window or 0), ``ropes`` (inv_freq, factor); slots "
            "are -1 for "
            "none.")
        .def("add_matrix", add_matrix, "format"_a, "data"_a.noconvert(), nb::keep_alive<1, 3>(),
             nb::sig("def add_matrix(self, format: str, data: NDArray[numpy.float32] | "
                     "NDArray[numpy.uint16]) -> None"),
             "Use a plain matrix where it lies.")
        .def("add_vector", add_vector, "format"_a, "data"_a.noconvert(),
             nb::sig("def add_vector(self, format: str, data: NDArray[numpy.float32] | "
                     "NDArray[numpy.uint16]) -> None"),
             "Widen a vector to float32.")
        .def(
            "add_integers",
            [](llmd::Parts& self, int64_t rows, int64_t cols, int64_t group_size, int64_t coarse_size,
               int32_t bits, int32_t zero, bool has_minimum, bool wide_scales, const std::vector<int>& book,
               bool in_int8) {
                self.add_integers(
                    rows, cols,
                    integer_format(group_size, coarse_size, bits, zero, has_minimum, wide_scales, book, in_int8));
            },
            "rows"_a, "cols"_a, "group_size"_a, "coarse_size"_a, "bits"_a, "zero"_a, "has_minimum"_a,
            "wide_scales"_a, "book"_a, "in_int8"_a,
            "Add a matrix of integer codes, which is packed or read once all weights are added.")
        .def("allocate_panels", &llmd::Parts::allocate_panels, nb::call_guard<nb::gil_scoped_release>(),
             "Make room for all integer matrices.")
        .def(
            "pack", pack, "index"_a, "codes"_a.noconvert(), "coarse"_a.noconvert(),
            "fine"_a.noconvert().none(), "coarse_minimums"_a.noconvert().none(),
            "fine_minimums"_a.noconvert().none(),
            nb::sig(
                "def pack(self, index: int, codes: NDArray[numpy.uint8], coarse: NDArray[numpy.uint16] | "
                "NDArray[numpy.float32], fine: NDArray[numpy.int8] | None, coarse_minimums: "
                "NDArray[numpy.uint16] | NDArray[numpy.float32] | None, fine_minimums: NDArray[numpy.int8] | "
                "None) -> None"),
            "Pack a matrix of integer codes into its panels.")
        .def("read_packed", &llmd::Parts::read_packed, "path"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Fill all panels from a file; whether it could be used.")
        .def("map_packed", &llmd::Parts::map_packed, "path"_a, "any_pages"_a,
             nb::call_guard<nb::gil_scoped_release>(),
             "Use the panels of a file where they lie, with no room made for them; whether it could be used: "
             "where it is not in huge pages, only if it may be in any.")
        .def("write_packed", &llmd::Parts::write_packed, "path"_a, nb::call_guard<nb::gil_scoped_release>(),
             "Keep all panels in a file, unless `stop_writing` is called meanwhile.")
        .def("stop_writing", &llmd::Parts::stop_writing, "End `write_packed` early; it then leaves no file.")
        .def("read_factors", read_factors,
             "Read what steps multiply by once, as fast as the machine can; returns the bytes.")
        .def(
            "kv_block_bytes",
            [](const llmd::Parts& self, size_t group, const std::string& dtype) {
                return llmd::kv_block_bytes(self.program.groups.at(group), kv_dtype(dtype));
            },
            "group"_a, "kv_dtype"_a, "Bytes of one block of a group, all its layers included.");
}

void bind_stage(nb::module_& module) {
    nb::class_<SelectionArrays>(module, "Selection",
                                "The rows of a step that need output; keeps its arrays alive.")
        .def(
            "__init__",
            [](SelectionArrays* self, In<int32_t, 1> rows, In<int32_t, 1> edit_offsets,
               In<int32_t, 1> edit_ids, In<float, 1> edit_factors, In<float, 1> edit_biases,
               In<bool, 1> masked, In<float, 1> temperatures, In<int32_t, 1> targets, int64_t raw_top) {
                const SelectionArrays arrays{rows,   edit_offsets, edit_ids, edit_factors, edit_biases,
                                             masked, temperatures, targets,  raw_top};
                arrays.check();
                new (self) SelectionArrays(arrays);
            },
            "rows"_a.noconvert(), "edit_offsets"_a.noconvert(), "edit_ids"_a.noconvert(),
            "edit_factors"_a.noconvert(), "edit_biases"_a.noconvert(), "masked"_a.noconvert(),
            "temperatures"_a.noconvert(), "targets"_a.noconvert(), "raw_top"_a);
    nb::class_<llmd::Stage>(module, "Stage", "The parts of a program with KV pools and step buffers.")
        .def(
            "__init__",
            [](llmd::Stage* self, const llmd::Parts& parts, std::vector<int64_t> blocks, int64_t max_rows,
               int64_t max_sequences, int64_t max_outputs, int64_t num_candidates, const std::string& dtype) {
                const llmd::StageLimits limits{max_rows, max_sequences, max_outputs, num_candidates,
                                               kv_dtype(dtype)};
                new (self) llmd::Stage(parts, std::move(blocks), limits);
            },
            "parts"_a, "blocks"_a, "max_rows"_a, "max_sequences"_a, "max_outputs"_a, "num_candidates"_a,
            "kv_dtype"_a, nb::keep_alive<1, 2>())
        .def("add_ticket", add_ticket, "hidden"_a.noconvert(), "raw"_a.noconvert(), "edited"_a.noconvert(),
             "ids"_a.noconvert(), "edited_values"_a.noconvert(), "raw_values"_a.noconvert(),
             "raw_logsumexp"_a.noconvert(), "edited_logsumexp"_a.noconvert(), "edited_entropy"_a.noconvert(),
             "edited_deviation"_a.noconvert(), "num_allowed"_a.noconvert(), "target_raw"_a.noconvert(),
             "top_ids"_a.noconvert(), "top_raw"_a.noconvert(),
             "Add a ticket, numbered from 0: the places of its results, which the caller keeps alive.")
        .def("submit", submit, "ticket"_a, "token_ids"_a.noconvert(), "positions"_a.noconvert(),
             "row_offsets"_a.noconvert(), "block_tables"_a.noconvert(), "copies"_a.noconvert(), "feed"_a,
             "hidden"_a.noconvert().none(), "selection"_a.none(),
             "token_types"_a.noconvert().none() = nb::none(), "Run a whole step on all threads.")
        .def("apply_masks", apply_masks, "ticket"_a, "masks"_a.noconvert(),
             "Finish the masked rows of a ticket.")
        .def("read_blocks", read_blocks, "group"_a, "blocks"_a.noconvert(), "contents"_a.noconvert(),
             "Copy what blocks of a KV group hold to the rows of ``contents``.")
        .def("write_blocks", write_blocks, "group"_a, "blocks"_a.noconvert(), "contents"_a.noconvert(),
             "The reverse of ``read_blocks``.");
}

}  // namespace

NB_MODULE(_ext, module) {
    module.def(
        "version", [] { return LLMD_VERSION; },
        "Version of the distribution that this module was built from.");
    module.def("available_isas", llmd::available_isas,
               "Instruction sets that this machine can run, the fastest first.");
    module.def(
        "compare", compare, "isa"_a, "placements"_a, "spin_us"_a, "num_bytes"_a, "budget_s"_a,
        "Decode in bytes/s and prefill in operations/s of each placement: threads and their processors.");
    nb::class_<Device>(module, "Device", "A pool of threads and the kernels of an instruction set.")
        .def(nb::init<const std::string&, int, int, const std::vector<int>&>(), "isa"_a, "threads"_a,
             "spin_us"_a, "processors"_a = std::vector<int>(),
             "``processors`` are those that the threads stay on, one for each; empty: anywhere.")
        .def(
            "measure", measure, "budget_s"_a,
            "(read, decode f32, decode bf16, decode q8, decode q4) in bytes/s, and prefill in operations/s.");
    bind_parts(module);
    bind_stage(module);
    bind_group_fit(module);
}
