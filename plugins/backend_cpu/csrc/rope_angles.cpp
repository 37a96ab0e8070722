#include "rope_angles.hpp"

#include <cmath>

namespace llmd {

RopeAngles::RopeAngles(const RopeTable& table, int64_t stride, int64_t max_rows)
    : table_(table),
      stride_(stride),
      max_rows_(max_rows),
      memory_(2 * sizeof(float) * static_cast<size_t>(max_rows) * table.inv_freq.size()) {}

void RopeAngles::compute(const int32_t* positions, int64_t rows, Worker& worker) {
    auto* cosines = memory_.as<float>();
    float* sines = cosines + max_rows_ * half();
    for (int64_t r; (r = worker.take(1)) < rows;) {
        const auto position = static_cast<double>(positions[r] / stride_ * stride_);
        for (int64_t i = 0; i < half(); ++i) {
            const double frequency = table_.inv_freq[static_cast<size_t>(i)];
            const bool turns = frequency != 0.0;  // most elements of a head may not
            cosines[r * half() + i] =
                static_cast<float>((turns ? std::cos(position * frequency) : 1.0) * table_.factor);
            sines[r * half() + i] =
                static_cast<float>((turns ? std::sin(position * frequency) : 0.0) * table_.factor);
        }
    }
}

}  // namespace llmd
