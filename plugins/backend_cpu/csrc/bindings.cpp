// The nanobind module llmd_backend_cpu._ext: checks dtypes, shapes and contiguity, releases the GIL, calls
// the core.
//
// float16 and bf16 are passed as uint16 bits. The Python side keeps arrays alive that the core holds on to
// (weights and the memory for results).

#include "bindings.hpp"

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

#include "stage.hpp"
#include "trial.hpp"

namespace nb = nanobind;
using namespace nb::literals;

llmd::KvDtype kv_dtype(const std::string& name) {
    if (name == "f32") return llmd::KvDtype::kF32;
    if (name == "f16") return llmd::KvDtype::kF16;
    if (name == "bf16") return llmd::KvDtype::kBF16;
    if (name == "int8") return llmd::KvDtype::kInt8;
    if (name == "int4") return llmd::KvDtype::kInt4;
    throw std::invalid_argument("unknown KV dtype " + name);
}

namespace {

// A selection and the arrays that it points into.
struct SelectionArrays {
    In<int32_t, 1> rows, edit_offsets, edit_ids;
    In<float, 1> edit_factors, edit_biases;
    In<bool, 1> masked;
    In<float, 1> temperatures;
    In<int32_t, 1> targets;
    int64_t raw_top;

    void check() const {
        const int64_t count = length(rows);
        require(length(edit_offsets) == count + 1, "edit_offsets must have one entry more than rows");
        require(length(edit_factors) == length(edit_ids) && length(edit_biases) == length(edit_ids),
                "edit_ids, edit_factors and edit_biases must have the same length");
        require(length(masked) == count && length(temperatures) == count && length(targets) == count,
                "masked, temperatures and targets must have the length of rows");
        require(raw_top >= 0 && raw_top <= 20, "raw_top must be 0 to 20");
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
            const std::optional<In<int32_t, 1>>& token_types, const std::optional<In<int32_t, 1>>& adapters) {
    require(length(row_offsets) >= 1, "row_offsets must have at least one entry");
    llmd::Step step{length(token_ids),
                    length(row_offsets) - 1,
                    token_ids.data(),
                    positions.data(),
                    row_offsets.data(),
                    {},
                    length(copies),
                    copies.data(),
                    token_types ? token_types->data() : nullptr,
                    adapters ? adapters->data() : nullptr};
    require(length(positions) == step.rows, "positions must have the length of token_ids");
    require(!token_types || length(*token_types) == step.rows,
            "token_types must have the length of token_ids");
    require(!adapters || length(*adapters) == step.sequences,
            "adapters must have an entry for each sequence");
    require(length(copies) == 0 || length(copies, 1) == 3, "copies must be triples");
    for (const auto& table : block_tables) {
        require(length(table) == step.sequences, "block_tables must have a row for each sequence");
        step.tables.push_back({table.data(), length(table, 1)});
    }
    require(!hidden || length(*hidden) == step.rows, "hidden must have a row for each token");
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
            "contents must have one row per block, with the bytes of a block");
    const nb::gil_scoped_release released;
    for (int64_t i = 0; i < length(blocks); ++i) {
        stage.pools().read(group, blocks.data()[i], contents.data() + i * length(contents, 1));
    }
}

void write_blocks(llmd::Stage& stage, int64_t group, const In<int32_t, 1>& blocks,
                  const In<uint8_t, 2>& contents) {
    require(length(contents) == length(blocks) && length(contents, 1) == stage.pools().block_bytes(group),
            "contents must have one row per block, with the bytes of a block");
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
    nb::class_<llmd::Stage>(module, "Stage", "The weights of a program with KV pools and step buffers.")
        .def(
            "__init__",
            [](llmd::Stage* self, const llmd::Weights& weights, std::vector<int64_t> blocks, int64_t max_rows,
               int64_t max_sequences, int64_t max_outputs, int64_t num_candidates, const std::string& dtype) {
                const llmd::StageLimits limits{max_rows, max_sequences, max_outputs, num_candidates,
                                               kv_dtype(dtype)};
                new (self) llmd::Stage(weights, std::move(blocks), limits);
            },
            "weights"_a, "blocks"_a, "max_rows"_a, "max_sequences"_a, "max_outputs"_a, "num_candidates"_a,
            "kv_dtype"_a, nb::keep_alive<1, 2>())
        .def("add_ticket", add_ticket, "hidden"_a.noconvert(), "raw"_a.noconvert(), "edited"_a.noconvert(),
             "ids"_a.noconvert(), "edited_values"_a.noconvert(), "raw_values"_a.noconvert(),
             "raw_logsumexp"_a.noconvert(), "edited_logsumexp"_a.noconvert(), "edited_entropy"_a.noconvert(),
             "edited_deviation"_a.noconvert(), "num_allowed"_a.noconvert(), "target_raw"_a.noconvert(),
             "top_ids"_a.noconvert(), "top_raw"_a.noconvert(),
             "Add a ticket with the arrays for its results, which the caller keeps alive. Tickets count from "
             "0.")
        .def("submit", submit, "ticket"_a, "token_ids"_a.noconvert(), "positions"_a.noconvert(),
             "row_offsets"_a.noconvert(), "block_tables"_a.noconvert(), "copies"_a.noconvert(), "feed"_a,
             "hidden"_a.noconvert().none(), "selection"_a.none(),
             "token_types"_a.noconvert().none() = nb::none(), "adapters"_a.noconvert().none() = nb::none(),
             "Run a whole step on all threads.")
        .def("apply_masks", apply_masks, "ticket"_a, "masks"_a.noconvert(),
             "Finish the masked rows of a ticket.")
        .def("read_blocks", read_blocks, "group"_a, "blocks"_a.noconvert(), "contents"_a.noconvert(),
             "Copy blocks of a KV group to the rows of ``contents``.")
        .def("write_blocks", write_blocks, "group"_a, "blocks"_a.noconvert(), "contents"_a.noconvert(),
             "Copy the rows of ``contents`` to blocks of a KV group.");
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
        "Return decode in bytes/s and prefill in operations/s for each placement: (threads, processors).");
    nb::class_<Device>(module, "Device", "A pool of threads and the kernels of an instruction set.")
        .def(nb::init<const std::string&, int, int, const std::vector<int>&>(), "isa"_a, "threads"_a,
             "spin_us"_a, "processors"_a = std::vector<int>(),
             "``processors`` names a logical processor to pin each thread to; empty: no pinning.");
    bind_weights(module);
    bind_stage(module);
    bind_quantization(module);
}
