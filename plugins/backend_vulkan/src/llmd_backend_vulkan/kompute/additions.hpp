// What llmd needs of Kompute and its Python module `kp` lacks. `build_kompute.py` includes this file in the
// module.
//
// - `kp.LlmdBarrier`: what earlier dispatches wrote is seen by later ones, also those of later submissions.
// - `kp.LlmdDispatch`: a dispatch with a number of work groups of its own, and push constants as bytes.
// - `kp.llmd_submit`: submit a sequence without waiting for it.
// - `kp.llmd_wait`: wait for a sequence without holding the interpreter's lock; a time limit leaves its fence
// alone.
// - `kp.LLMD_ADDITIONS`: the version of all this.

#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <kompute/Kompute.hpp>
#include <memory>
#include <string>
#include <utility>

namespace llmd {

// Reads a private member: an explicit instantiation may name it.
template <typename Tag, typename Tag::Type Member>
struct Opened {
    friend typename Tag::Type open(Tag) { return Member; }
};
struct Fence {
    using Type = vk::Fence kp::Sequence::*;
    friend Type open(Fence);
};
struct Device {
    using Type = std::shared_ptr<vk::Device> kp::Sequence::*;
    friend Type open(Device);
};
template struct Opened<Fence, &kp::Sequence::mFence>;
template struct Opened<Device, &kp::Sequence::mDevice>;

class Barrier : public kp::OpBase {
  public:
    void record(const vk::CommandBuffer& commands) override {
        const auto shader = vk::PipelineStageFlagBits::eComputeShader,
                   host = vk::PipelineStageFlagBits::eHost;
        const vk::MemoryBarrier memory(vk::AccessFlagBits::eShaderWrite,
                                       vk::AccessFlagBits::eShaderRead | vk::AccessFlagBits::eShaderWrite |
                                           vk::AccessFlagBits::eHostRead);
        commands.pipelineBarrier(shader, shader | host, vk::DependencyFlags(), memory, nullptr, nullptr);
    }
    void preEval(const vk::CommandBuffer&) override {}
    void postEval(const vk::CommandBuffer&) override {}
};

class Dispatch : public kp::OpBase {
  public:
    Dispatch(std::shared_ptr<kp::Algorithm> algorithm, pybind11::bytes constants, kp::Workgroup groups)
        : algorithm_(std::move(algorithm)), constants_(constants), groups_(groups) {}
    void record(const vk::CommandBuffer& commands) override {
        if (!constants_.empty()) {
            algorithm_->setPushConstants(&constants_[0], static_cast<uint32_t>(constants_.size() / 4), 4);
        }
        algorithm_->recordBindCore(commands);
        algorithm_->recordBindPush(commands);
        commands.dispatch(groups_[0], groups_[1], groups_[2]);
    }
    void preEval(const vk::CommandBuffer&) override {}
    void postEval(const vk::CommandBuffer&) override {}

  private:
    std::shared_ptr<kp::Algorithm> algorithm_;
    std::string constants_;
    kp::Workgroup groups_;
};

// Returns whether the sequence has ended. `kp.Sequence.eval_await` destroys the fence even if it has not.
inline bool wait(kp::Sequence& sequence, uint64_t nanoseconds) {
    if (!sequence.isRunning()) {
        return true;
    }
    const pybind11::gil_scoped_release released;
    const vk::Device& device = *(sequence.*open(Device{}));
    if (device.waitForFences(sequence.*open(Fence{}), VK_TRUE, nanoseconds) == vk::Result::eTimeout) {
        return false;
    }
    sequence.evalAwait();
    return true;
}

inline void add_to(pybind11::module_& module) {
    pybind11::class_<Barrier, kp::OpBase, std::shared_ptr<Barrier>>(module, "LlmdBarrier")
        .def(pybind11::init<>());
    pybind11::class_<Dispatch, kp::OpBase, std::shared_ptr<Dispatch>>(module, "LlmdDispatch")
        .def(pybind11::init<std::shared_ptr<kp::Algorithm>, pybind11::bytes, kp::Workgroup>());
    module.def("llmd_submit", [](kp::Sequence& sequence) { sequence.evalAsync(); });
    module.def("llmd_wait", &wait);
    module.attr("LLMD_ADDITIONS") = 1;
}

}  // namespace llmd
