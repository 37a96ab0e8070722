#include "bindings.hpp"
#include "group_fit.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Weights = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
constexpr size_t kRows = 6;

// The rows of `out` as what is found, for `weights`.
llmd::GroupFit rows_of(const Numbers& out, const Weights& weights) {
    if (weights.shape(0) == 0 || out.shape(0) != kRows || out.shape(1) != weights.shape(1)) {
        throw std::invalid_argument("groups have weights, and six results each");
    }
    const auto row = [&](size_t number) { return out.data() + number * out.shape(1); };
    return {row(0), row(1), {row(2), row(3), row(4)}, row(5)};
}

llmd::GroupedWeights grouped(const Weights& weights) {
    return {weights.data(), static_cast<int64_t>(weights.shape(0)), static_cast<int64_t>(weights.shape(1))};
}

void fit_affine(const Weights& weights, int most, bool minimum_below_zero, const Numbers& out) {
    const llmd::GroupFit fit = rows_of(out, weights);
    const nb::gil_scoped_release unlocked;
    llmd::fit_affine(grouped(weights), most, minimum_below_zero, fit);
}

void fit_symmetric(const Weights& weights, int half, const Numbers& out) {
    const llmd::GroupFit fit = rows_of(out, weights);
    const nb::gil_scoped_release unlocked;
    llmd::fit_symmetric(grouped(weights), half, fit);
}

}  // namespace

void bind_group_fit(nb::module_& module) {
    module.def("fit_affine", fit_affine, "weights"_a.noconvert(), "most"_a, "minimum_below_zero"_a,
               "out"_a.noconvert(),
               "Fill the rows of ``out``: scale, minimum, sums of codes, of squares, of products, error.");
    module.def("fit_symmetric", fit_symmetric, "weights"_a.noconvert(), "half"_a, "out"_a.noconvert(),
               "As `fit_affine`, without a minimum.");
}
