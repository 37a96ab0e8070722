// Replays conformance cases on the units of this machine, without Python: under sanitizers, or emulated.
//
//   replay CASE…        runs each case on each unit, and each schedule with another number of threads;
//                       prints what is wrong
//
// Exits with 1 if results differ from the reference by more than the case allows, if candidates do not
// follow from the logits, or if schedules (and with them numbers of threads) give different bits for the
// same row.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "cpu_features.hpp"
#include "stage.hpp"
#include "test/case_file.hpp"

namespace llmd::test {

namespace {

using Place = std::pair<int64_t, int64_t>;
using Rows = std::map<Place, std::vector<float>>;

void require(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
}

Program read_program(const CaseFile& file) {
    const std::vector<int64_t> sizes = file.at("program/sizes").int64s();
    Program program{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], file.at("program/slot_widths").int64s(),
                    {},       {},       {}};
    for (int g = 0; file.has("program/groups/" + std::to_string(g)); ++g) {
        const std::vector<int64_t> group = file.at("program/groups/" + std::to_string(g)).int64s();
        program.groups.push_back({group[0], group[1], group[2], group[3], group[4], group[5], group[6]});
    }
    for (int i = 0; file.has("program/ropes/" + std::to_string(i)); ++i) {
        const std::vector<double> table = file.at("program/ropes/" + std::to_string(i)).doubles();
        program.ropes.push_back({{table.begin() + 1, table.end()}, table[0]});
    }
    program.rounds = sizes[5] != 0;
    program.ops = parse_ops(file.at("program/records").int64s(), file.at("program/floats").doubles());
    return program;
}

// Scales or minimums of a weight; empty if the file has none of that name.
GroupScales read_scales(const CaseFile& file, const std::string& name) {
    if (!file.has(name + "/coarse")) return {};
    const Array& coarse = file.at(name + "/coarse");
    GroupScales scales{coarse.data, coarse.dtype == kFloat32, coarse.shape[1], nullptr, 0};
    if (file.has(name + "/fine")) {
        scales.fine = file.at(name + "/fine").as<int8_t>();
        scales.fine_columns = file.at(name + "/fine").shape[1];
    }
    return scales;
}

IntegerMatrix read_integers(const CaseFile& file, const std::string& under) {
    const Array& codes = file.at(under + "codes");
    const std::vector<int64_t> numbers = file.at(under + "integers").int64s();
    const GroupScales scales = read_scales(file, under + "scales");
    const GroupScales minimums = read_scales(file, under + "minimums");
    IntegerFormat format{static_cast<int32_t>(numbers[0]), static_cast<int32_t>(numbers[1]), numbers[2],
                         numbers[3], minimums.coarse != nullptr};
    format.bf16_scales = scales.wide;
    format.in_int8 = numbers[4] != 0;
    format.outliers = static_cast<int32_t>(numbers[5]);
    format.has_book = numbers.size() > 6;
    std::copy(numbers.begin() + 6, numbers.end(), format.book);
    IntegerMatrix matrix{codes.shape[0], codes.shape[1], format, codes.data, scales, minimums};
    if (format.outliers > 0) {
        matrix.outlier_columns = file.at(under + "outliers/columns").as<uint8_t>();
        matrix.outlier_residuals = file.at(under + "outliers/residuals").as<int8_t>();
    }
    return matrix;
}

// Rows [first, first + count).
GroupScales rows_of(const GroupScales& scales, int64_t first) {
    if (scales.coarse == nullptr) return scales;
    GroupScales rows = scales;
    const int64_t bytes = scales.wide ? 4 : 2;
    rows.coarse = static_cast<const uint8_t*>(scales.coarse) + first * scales.coarse_columns * bytes;
    if (scales.fine != nullptr) rows.fine = scales.fine + first * scales.fine_columns;
    return rows;
}

IntegerMatrix rows_of(const IntegerMatrix& matrix, int64_t first, int64_t count) {
    IntegerMatrix rows = matrix;
    rows.rows = count;
    rows.codes = matrix.codes + first * matrix.cols;
    rows.scales = rows_of(matrix.scales, first);
    rows.minimums = rows_of(matrix.minimums, first);
    const int64_t outliers = pieces(matrix.cols, matrix.format.group_size) * matrix.format.outliers;
    if (matrix.outlier_columns != nullptr) rows.outlier_columns = matrix.outlier_columns + first * outliers;
    if (matrix.outlier_residuals != nullptr)
        rows.outlier_residuals = matrix.outlier_residuals + first * outliers;
    return rows;
}

// The number of matrices, one below the other, in a weight.
int64_t members_of(const CaseFile& file, const std::string& under) {
    return file.has(under + "members") ? file.at(under + "members").int64s().at(0) : 1;
}

void add_plain(Weights& weights, Format format, const Array& data, int64_t members) {
    if (data.shape.size() == 1) return weights.add_vector(format, data.count(), data.data);
    const int64_t rows = data.shape[0] / members;
    const int64_t bytes = rows * data.shape[1] * (format == Format::kF32 ? 4 : 2);
    for (int64_t m = 0; m < members; ++m) {
        weights.add_matrix(format, rows, data.shape[1], data.data + m * bytes, m > 0);
    }
}

void add_float8(const CaseFile& file, Weights& weights, const std::string& under, const Array& codes) {
    const Array& scales = file.at(under + "scales");
    const int64_t members = members_of(file, under);
    const int64_t rows = codes.shape[0] / members;
    for (int64_t m = 0; m < members; ++m) {
        Matrix matrix{Format::kFloat8, rows, codes.shape[1], {}, codes.data + m * rows * codes.shape[1]};
        matrix.scales = scales.as<float>() + m * rows * scales.shape[1];
        matrix.group_size = file.at(under + "group_size").int64s().at(0);
        weights.add_float8(matrix, m > 0);
    }
}

// Packs the matrices of a weight, from the blocks of a GGUF file if there are any.
void pack_weight(const CaseFile& file, Weights& weights, int64_t index, const IntegerMatrix& matrix) {
    const std::string under = "weights/" + std::to_string(index) + "/";
    const int64_t members = members_of(file, under);
    const int64_t rows = matrix.rows / members;
    for (int64_t m = 0; m < members; ++m) {
        if (!file.has(under + "blocks")) {
            weights.pack(index, rows_of(matrix, m * rows, rows), m);
            continue;
        }
        const Array& name = file.at(under + "block_format");
        const BlockLayout& layout = block_layout({name.as<char>(), static_cast<size_t>(name.count())});
        const uint8_t* blocks = file.at(under + "blocks").data + m * rows * layout.row_bytes(matrix.cols);
        const bool finite = weights.pack_blocks(index, {layout, rows, matrix.cols, blocks}, m);
        require(finite, "blocks with scales that are not finite");
    }
}

void add_weights(const CaseFile& file, Weights& weights) {
    const std::pair<const char*, Format> formats[] = {
        {"f32", Format::kF32},    {"f16", Format::kF16},      {"bf16", Format::kBF16},
        {"fp8", Format::kFloat8}, {"nvfp4", Format::kFloat8}, {"codes", Format::kInteger}};
    std::map<int64_t, IntegerMatrix> integers;
    for (int64_t i = 0;; ++i) {
        const std::string under = "weights/" + std::to_string(i) + "/";
        const auto* found = std::find_if(std::begin(formats), std::end(formats),
                                         [&](const auto& format) { return file.has(under + format.first); });
        if (found == std::end(formats)) break;
        const Array& data = file.at(under + found->first);
        const int64_t members = members_of(file, under);
        if (found->second == Format::kFloat8) {
            add_float8(file, weights, under, data);
            continue;
        }
        if (found->second != Format::kInteger) {
            add_plain(weights, found->second, data, members);
            continue;
        }
        const IntegerMatrix& matrix = integers[i] = read_integers(file, under);
        for (int64_t m = 0; m < members; ++m) {
            weights.add_integers(matrix.rows / members, matrix.cols, matrix.format, m > 0);
        }
    }
    weights.allocate_panels();
    for (const auto& [index, matrix] : integers) pack_weight(file, weights, index, matrix);
}

StageLimits read_limits(const Array& array) {
    const std::vector<int64_t> numbers = array.int64s();
    return {numbers[0], numbers[1], numbers[2], numbers[3], static_cast<KvDtype>(numbers[4])};
}

// Memory for the results of one ticket, of the exact size, so that a sanitizer detects writes beyond it.
struct Results {
    std::vector<float> hidden, raw, edited, edited_values, raw_values, raw_lse, edited_lse, entropy,
        deviation, target_raw, top_raw;
    std::vector<int32_t> ids, num_allowed, top_ids;

    Results(const Program& program, const StageLimits& limits) {
        const auto outputs = static_cast<size_t>(limits.max_outputs);
        const auto vocab = static_cast<size_t>(program.vocab_size);
        const size_t kept = std::min(static_cast<size_t>(limits.num_candidates), vocab);
        if (program.hidden_out >= 0) {
            const int64_t width = program.slot_widths[static_cast<size_t>(program.hidden_out)];
            hidden.resize(static_cast<size_t>(limits.max_rows * width));
        }
        for (auto* logits : {&raw, &edited}) logits->resize(outputs * vocab);
        for (auto* values : {&edited_values, &raw_values}) values->resize(outputs * kept);
        for (auto* sums : {&raw_lse, &edited_lse, &entropy, &deviation, &target_raw}) sums->resize(outputs);
        ids.resize(outputs * kept);
        num_allowed.resize(outputs);
        top_ids.resize(outputs * 20);
        top_raw.resize(outputs * 20);
    }
    Outputs places() {
        return {hidden.data(),        raw.data(),        edited.data(),      ids.data(),
                edited_values.data(), raw_values.data(), raw_lse.data(),     edited_lse.data(),
                entropy.data(),       deviation.data(),  num_allowed.data(), target_raw.data(),
                top_ids.data(),       top_raw.data()};
    }
};

Step read_step(const CaseFile& file, const std::string& under) {
    const Array& tokens = file.at(under + "token_ids");
    const Array& offsets = file.at(under + "row_offsets");
    const Array& copies = file.at(under + "copies");
    Step step{tokens.count(),
              offsets.count() - 1,
              tokens.as<int32_t>(),
              file.at(under + "positions").as<int32_t>(),
              offsets.as<int32_t>(),
              {},
              copies.shape[0],
              copies.as<int32_t>(),
              file.has(under + "token_types") ? file.at(under + "token_types").as<int32_t>() : nullptr,
              file.has(under + "adapters") ? file.at(under + "adapters").as<int32_t>() : nullptr};
    for (int g = 0; file.has(under + "block_tables/" + std::to_string(g)); ++g) {
        const Array& table = file.at(under + "block_tables/" + std::to_string(g));
        step.tables.push_back({table.as<int32_t>(), table.shape[1]});
    }
    return step;
}

Selection read_selection(const CaseFile& file, const std::string& under) {
    const auto ints = [&](const char* name) { return file.at(under + name).as<int32_t>(); };
    const auto floats = [&](const char* name) { return file.at(under + name).as<float>(); };
    return {file.at(under + "rows").count(),
            ints("rows"),
            ints("edit_offsets"),
            ints("edit_ids"),
            floats("edit_factors"),
            floats("edit_biases"),
            file.at(under + "masked").as<bool>(),
            floats("temperatures"),
            ints("targets"),
            file.at(under + "raw_top").int64s()[0]};
}

// Computes the properties of an edited row a second time, in the plainest way.
void check_shape(double temperature, const Results& results, int64_t row, int64_t vocab, double top) {
    const float* edited = results.edited.data() + row * vocab;
    double weight = 0.0;
    double weighted = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    int32_t finite = 0;
    for (int64_t id = 0; id < vocab; ++id) {
        if (std::isinf(edited[id])) continue;
        const double x = (edited[id] - top) / temperature;
        weight += std::exp(x);
        weighted += std::exp(x) * x;
        sum += edited[id];
        squares += static_cast<double>(edited[id]) * edited[id];
        ++finite;
    }
    const auto near = [row](const std::vector<float>& found, double expected, const char* name) {
        const double error = std::fabs(found[static_cast<size_t>(row)] - expected);
        require(error <= 1e-5 * std::max(1.0, std::fabs(expected)), std::string(name) + " is wrong");
    };
    near(results.edited_lse, std::log(weight) + top / temperature, "edited_logsumexp");
    near(results.entropy, std::log(weight) - weighted / weight, "edited_entropy");
    const double mean = sum / finite;
    near(results.deviation, std::sqrt(std::max(0.0, squares / finite - mean * mean)), "edited_deviation");
    require(results.num_allowed[static_cast<size_t>(row)] == finite, "num_allowed is wrong");
}

// Computes the candidates of one row a second time from its logits, in the plainest way.
void check_candidates(const Selection& selection, const Results& results, int64_t row, int64_t vocab,
                      int64_t kept) {
    const float* edited = results.edited.data() + row * vocab;
    std::vector<int32_t> order(static_cast<size_t>(vocab));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int32_t a, int32_t b) { return edited[a] != edited[b] ? edited[a] > edited[b] : a < b; });
    for (int64_t i = 0; i < kept; ++i) {
        require(results.ids[static_cast<size_t>(row * kept + i)] == order[static_cast<size_t>(i)],
                "candidate " + std::to_string(i) + " is not the next largest logit");
    }
    check_shape(selection.temperatures[row], results, row, vocab, edited[order[0]]);
}

struct Errors {
    double squared = 0.0;
    double reference = 0.0;

    void add(const float* mine, const float* expected, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
            const double difference = static_cast<double>(mine[i]) - expected[i];
            squared += difference * difference;
            reference += static_cast<double>(expected[i]) * expected[i];
        }
    }
};

// Runs one schedule and returns its rows; adds their distance from the reference to `errors`.
Rows run_schedule(const CaseFile& file, const Weights& weights, const std::string& schedule, Errors& errors) {
    const StageLimits limits = read_limits(file.at(schedule + "limits"));
    Stage stage(weights, file.at("blocks").int64s(), limits);
    Results results(weights.program, limits);
    stage.add_ticket(results.places());
    const int64_t vocab = weights.program.vocab_size;
    Rows rows;
    for (int k = 0; file.has(schedule + std::to_string(k) + "/token_ids"); ++k) {
        const std::string under = schedule + std::to_string(k) + "/";
        const bool head = file.has(under + "selection/rows");
        const Selection selection = head ? read_selection(file, under + "selection/") : Selection{};
        const int64_t edits = head ? file.at(under + "selection/edit_ids").count() : 0;
        const float* hidden = file.has(under + "hidden") ? file.at(under + "hidden").as<float>() : nullptr;
        stage.submit(0, read_step(file, under), -1, hidden, head ? &selection : nullptr, edits);
        if (file.has(under + "masks")) {
            const Array& masks = file.at(under + "masks");
            stage.apply_masks(0, masks.as<uint32_t>(), masks.shape[1]);
        }
        const Array& expected = file.at(under + "expected");
        const int64_t width = expected.shape[1];
        const float* found = head ? results.raw.data() : results.hidden.data();
        errors.add(found, expected.as<float>(), expected.count());
        const int64_t* places = file.at(under + "places").as<int64_t>();
        for (int64_t row = 0; row < expected.shape[0]; ++row) {
            if (head)
                check_candidates(selection, results, row, vocab, std::min(limits.num_candidates, vocab));
            rows[{places[2 * row], places[2 * row + 1]}] = {found + row * width, found + (row + 1) * width};
        }
    }
    return rows;
}

void compare(const Rows& mine, const Rows& first, const std::string& schedule) {
    require(mine.size() == first.size(), schedule + " has other rows");
    for (const auto& [place, row] : first) {
        const bool same = std::memcmp(mine.at(place).data(), row.data(), sizeof(float) * row.size()) == 0;
        require(same, schedule + " leaves other bits for sequence " + std::to_string(place.first) +
                          ", position " + std::to_string(place.second));
    }
}

// Threads for the schedules of a case, in turn. The second schedule has the most steps, of one row each.
constexpr int kThreads[] = {3, 1, 2};

void replay(const CaseFile& file, const std::string& isa) {
    Rows first;
    for (int j = 0; file.has("schedules/" + std::to_string(j) + "/limits"); ++j) {
        const std::string schedule = "schedules/" + std::to_string(j) + "/";
        const int threads = kThreads[j % std::size(kThreads)];
        ThreadPool pool(threads, 0);
        Weights weights(read_program(file), pool, kernels_of(isa));
        add_weights(file, weights);
        Errors errors;
        const Rows rows = run_schedule(file, weights, schedule, errors);
        const double nmse = errors.squared / std::max(errors.reference, 1e-300);
        require(nmse <= file.at("max_nmse").doubles()[0],
                schedule + " has an NMSE of " + std::to_string(nmse));
        if (first.empty()) first = rows;
        compare(rows, first, schedule + " with " + std::to_string(threads) + " threads");
    }
}

}  // namespace

}  // namespace llmd::test

int main(int argc, char** argv) {
    int failures = 0;
    for (const std::string& isa : llmd::available_isas()) {
        for (int i = 1; i < argc; ++i) {
            try {
                llmd::test::replay(llmd::test::CaseFile(argv[i]), isa);
            } catch (const std::exception& error) {
                std::printf("%s %s: %s\n", isa.c_str(), argv[i], error.what());
                ++failures;
            }
        }
        std::printf("%s: %d cases replayed\n", isa.c_str(), argc - 1);
    }
    return failures == 0 ? 0 : 1;
}
