#include <nanobind/stl/string.h>

#include <algorithm>

#include "bindings.hpp"
#include "quantization.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Bytes = In<uint8_t, 2>;  // plain weights, [rows, bytes of a row]
using Codes = Out<uint8_t, 2>;
using Halves = Out<uint16_t, 2>;  // the bits of float16
using Fine = Out<uint8_t, 2>;

llmd::PlainFormat plain_format(const std::string& name) {
    if (name == "f32") return llmd::PlainFormat::kF32;
    if (name == "f16") return llmd::PlainFormat::kF16;
    require(name == "bf16", "plain weights must be f32, f16 or bf16");
    return llmd::PlainFormat::kBF16;
}

llmd::PlainRows plain_rows(const Bytes& weights, const std::string& format, const Codes& codes) {
    const llmd::PlainRows rows{reinterpret_cast<const std::byte*>(weights.data()), plain_format(format),
                               length(codes), length(codes, 1)};
    require(
        length(weights) == rows.rows && length(weights, 1) == rows.row_len * llmd::plain_bytes(rows.format),
        "codes must have one code per weight");
    return rows;
}

// Checks that there is a number for every `size` weights of a row.
void require_numbers(const auto& numbers, const llmd::PlainRows& rows, int64_t size) {
    require(
        size > 0 && length(numbers) == rows.rows && length(numbers, 1) == (rows.row_len + size - 1) / size,
        "pass one number for each group of a row");
}

void require_bits(int bits) { require(bits > 0 && bits < 8, "codes must have 1 to 7 bits"); }

bool quantize_eight_bits(const Bytes& weights, const std::string& format, int64_t group_size,
                         const Codes& codes, const Halves& scales, const Out<uint8_t, 3>& columns,
                         const Out<int8_t, 3>& residuals) {
    const llmd::PlainRows rows = plain_rows(weights, format, codes);
    require_numbers(scales, rows, group_size);
    const llmd::OutlierPlaces outliers{length(columns, 2), columns.data(), residuals.data()};
    require(outliers.count <= 8 && (outliers.count == 0 || group_size <= 256),
            "groups with outliers must have at most 256 weights and 8 outliers");
    for (size_t axis = 0; axis < 3; ++axis) {
        require(columns.shape(axis) == residuals.shape(axis) &&
                    (axis == 2 || columns.shape(axis) == scales.shape(axis)),
                "each group must have the same number of outliers");
    }
    const nb::gil_scoped_release unlocked;
    return llmd::quantize_eight_bits(rows, group_size, codes.data(), scales.data(), outliers);
}

bool quantize_symmetric(const Bytes& weights, const std::string& format, int64_t group_size, int bits,
                        const Codes& codes, const Halves& scales) {
    const llmd::PlainRows rows = plain_rows(weights, format, codes);
    require_numbers(scales, rows, group_size);
    require_bits(bits);
    const nb::gil_scoped_release unlocked;
    return llmd::quantize_symmetric(rows, group_size, 1 << (bits - 1), codes.data(), scales.data());
}

bool quantize_with_minimums(const Bytes& weights, const std::string& format, int64_t group_size, int bits,
                            const Codes& codes, const Halves& scales, const Halves& minimums) {
    const llmd::PlainRows rows = plain_rows(weights, format, codes);
    require_numbers(scales, rows, group_size);
    require_numbers(minimums, rows, group_size);
    require_bits(bits);
    const nb::gil_scoped_release unlocked;
    return llmd::quantize_with_minimums(rows, group_size, (1 << bits) - 1, codes.data(), scales.data(),
                                        minimums.data());
}

bool quantize_bytes(const Bytes& weights, const std::string& format, int64_t group_size, int bits,
                    int fine_bits, const Codes& codes, const Halves& coarse, const Fine& fine_scales,
                    const Fine& fine_minimums) {
    const llmd::PlainRows rows = plain_rows(weights, format, codes);
    require_numbers(fine_scales, rows, group_size);
    require_numbers(fine_minimums, rows, group_size);
    require_bits(bits);
    const int64_t blocks = length(coarse, 1);
    const int64_t per_coarse = blocks == 0 ? 0 : length(fine_scales, 1) / blocks;
    require(length(coarse) == rows.rows && blocks * per_coarse * group_size == rows.row_len &&
                (per_coarse == 8 || per_coarse == 16),
            "rows must consist of whole blocks of 8 or 16 groups");
    require(fine_bits > 0 && fine_bits <= 8, "fine scales must have 1 to 8 bits");
    const int most = (1 << bits) - 1;
    // So that fine scale * code fits in a byte.
    const int most_fine_scale = std::min((1 << fine_bits) - 1, 255 / most);
    const nb::gil_scoped_release unlocked;
    return llmd::quantize_bytes(
        rows, group_size, most, codes.data(),
        {per_coarse, most_fine_scale, coarse.data(), fine_scales.data(), fine_minimums.data()});
}

}  // namespace

void bind_quantization(nb::module_& module) {
    module.def(
        "quantize_eight_bits", quantize_eight_bits, "weights"_a.noconvert(), "format"_a, "group_size"_a,
        "codes"_a.noconvert(), "scales"_a.noconvert(), "columns"_a.noconvert(), "residuals"_a.noconvert(),
        "Quantise plain weights, given as bytes, into the arrays; scales are the bits of float16. Return "
        "whether all\nweights and scales are in range.");
    module.def("quantize_symmetric", quantize_symmetric, "weights"_a.noconvert(), "format"_a, "group_size"_a,
               "bits"_a, "codes"_a.noconvert(), "scales"_a.noconvert(),
               "Like `quantize_eight_bits`, for few bits.");
    module.def("quantize_with_minimums", quantize_with_minimums, "weights"_a.noconvert(), "format"_a,
               "group_size"_a, "bits"_a, "codes"_a.noconvert(), "scales"_a.noconvert(),
               "minimums"_a.noconvert(), "Like `quantize_eight_bits`, for few bits.");
    module.def("quantize_bytes", quantize_bytes, "weights"_a.noconvert(), "format"_a, "group_size"_a,
               "bits"_a, "fine_bits"_a, "codes"_a.noconvert(), "coarse"_a.noconvert(),
               "fine_scales"_a.noconvert(), "fine_minimums"_a.noconvert(),
               "Like `quantize_eight_bits`, for few bits in int8.");
}
