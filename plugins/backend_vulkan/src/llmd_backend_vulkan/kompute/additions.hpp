// What llmd needs of Kompute and its Python module `kp` lacks. `build_kompute.py` includes this file in the
// module.
//
// - `kp.LlmdBarrier`: what earlier dispatches wrote is seen by later ones, also those of later submissions.
// - `kp.LlmdDispatch`: a dispatch with a number of work groups of its own, and push constants as bytes.
// - `kp.LlmdCopy`: a copy of bytes between two tensors, which no barrier above waits for.
// - `kp.LlmdSemaphore`: orders submissions, also those of different queues.
// - `kp.LlmdStamps`, `kp.LlmdStamp`: times of the device in a sequence that is submitted again and again.
// - `kp.llmd_allocate`: memory of the device for a tensor, without a copy of it in main memory.
// - `kp.llmd_submit`: submit a sequence without waiting for it, with the semaphores that it waits for and
// signals.
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
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace llmd {

// Reads a private member: an explicit instantiation may name it.
template <typename Tag, typename Tag::Type Member>
struct Opened {
    friend typename Tag::Type open(Tag) { return Member; }
};

#define LLMD_OPEN(NAME, OWNER, TYPE, MEMBER) \
    struct NAME {                            \
        using Type = TYPE kp::OWNER::*;      \
        friend Type open(NAME);              \
    };                                       \
    template struct Opened<NAME, &kp::OWNER::MEMBER>;

LLMD_OPEN(Fence, Sequence, vk::Fence, mFence)
LLMD_OPEN(Device, Sequence, std::shared_ptr<vk::Device>, mDevice)
LLMD_OPEN(Queue, Sequence, std::shared_ptr<vk::Queue>, mComputeQueue)
LLMD_OPEN(Commands, Sequence, std::shared_ptr<vk::CommandBuffer>, mCommandBuffer)
LLMD_OPEN(IsRunning, Sequence, bool, mIsRunning)
LLMD_OPEN(ManagerDevice, Manager, std::shared_ptr<vk::Device>, mDevice)
LLMD_OPEN(TensorDevice, Tensor, std::shared_ptr<vk::Device>, mDevice)
LLMD_OPEN(TensorCard, Tensor, std::shared_ptr<vk::PhysicalDevice>, mPhysicalDevice)
LLMD_OPEN(TensorSize, Tensor, uint32_t, mSize)
LLMD_OPEN(TensorBuffer, Tensor, std::shared_ptr<vk::Buffer>, mPrimaryBuffer)
LLMD_OPEN(TensorMemory, Tensor, std::shared_ptr<vk::DeviceMemory>, mPrimaryMemory)
LLMD_OPEN(FreesBuffer, Tensor, bool, mFreePrimaryBuffer)
LLMD_OPEN(FreesMemory, Tensor, bool, mFreePrimaryMemory)

#undef LLMD_OPEN

// An operation that is only recorded.
class Recorded : public kp::OpBase {
  public:
    void preEval(const vk::CommandBuffer&) override {}
    void postEval(const vk::CommandBuffer&) override {}
};

class Barrier : public Recorded {
  public:
    void record(const vk::CommandBuffer& commands) override {
        const auto shader = vk::PipelineStageFlagBits::eComputeShader,
                   host = vk::PipelineStageFlagBits::eHost;
        const vk::MemoryBarrier memory(vk::AccessFlagBits::eShaderWrite,
                                       vk::AccessFlagBits::eShaderRead | vk::AccessFlagBits::eShaderWrite |
                                           vk::AccessFlagBits::eHostRead);
        commands.pipelineBarrier(shader, shader | host, vk::DependencyFlags(), memory, nullptr, nullptr);
    }
};

class Dispatch : public Recorded {
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

  private:
    std::shared_ptr<kp::Algorithm> algorithm_;
    std::string constants_;
    kp::Workgroup groups_;
};

// A copy of bytes. It is no work of shaders, so that barriers between these do not wait for it.
class Copy : public Recorded {
  public:
    Copy(std::shared_ptr<kp::Tensor> from, vk::DeviceSize from_at, std::shared_ptr<kp::Tensor> to,
         vk::DeviceSize to_at, vk::DeviceSize num_bytes)
        : from_(std::move(from)), to_(std::move(to)), range_(from_at, to_at, num_bytes) {}
    void record(const vk::CommandBuffer& commands) override {
        const auto buffer = open(TensorBuffer{});
        commands.copyBuffer(*((*from_).*buffer), *((*to_).*buffer), range_);
    }

  private:
    std::shared_ptr<kp::Tensor> from_, to_;
    vk::BufferCopy range_;
};

// Is signalled by one submission and waited for by a later one, in turn.
class Semaphore {
  public:
    explicit Semaphore(std::shared_ptr<kp::Manager> manager)
        : manager_(std::move(manager)), handle_(device().createSemaphore({})) {}
    ~Semaphore() { device().destroySemaphore(handle_); }
    Semaphore(const Semaphore&) = delete;
    Semaphore& operator=(const Semaphore&) = delete;
    vk::Semaphore handle() const { return handle_; }

  private:
    const vk::Device& device() const { return *((*manager_).*open(ManagerDevice{})); }
    std::shared_ptr<kp::Manager> manager_;
    vk::Semaphore handle_;
};

// Times of the device, in its ticks.
class Stamps {
  public:
    Stamps(std::shared_ptr<kp::Manager> manager, uint32_t count)
        : manager_(std::move(manager)),
          count_(count),
          pool_(device().createQueryPool({{}, vk::QueryType::eTimestamp, count})) {}
    ~Stamps() { device().destroyQueryPool(pool_); }
    Stamps(const Stamps&) = delete;
    Stamps& operator=(const Stamps&) = delete;
    void reset(const vk::CommandBuffer& commands) const { commands.resetQueryPool(pool_, 0, count_); }
    void write(const vk::CommandBuffer& commands, uint32_t index, vk::PipelineStageFlagBits stage) const {
        commands.writeTimestamp(stage, pool_, index);
    }
    // Returns all times of a sequence that has ended.
    std::vector<uint64_t> read() const {
        std::vector<uint64_t> ticks(count_);
        const auto flags = vk::QueryResultFlagBits::e64 | vk::QueryResultFlagBits::eWait;
        const auto result =
            device().getQueryPoolResults(pool_, 0, count_, 8 * ticks.size(), ticks.data(), 8, flags);
        if (result != vk::Result::eSuccess) {
            throw std::runtime_error("vk::Device::getQueryPoolResults: " + vk::to_string(result));
        }
        return ticks;
    }

  private:
    const vk::Device& device() const { return *((*manager_).*open(ManagerDevice{})); }
    std::shared_ptr<kp::Manager> manager_;
    uint32_t count_;
    vk::QueryPool pool_;
};

// Notes the time when everything before it is done: all shaders, or all copies. The first of a sequence
// resets the others.
class Stamp : public Recorded {
  public:
    Stamp(std::shared_ptr<Stamps> stamps, uint32_t index, bool is_copy)
        : stamps_(std::move(stamps)),
          index_(index),
          stage_(is_copy ? vk::PipelineStageFlagBits::eTransfer : vk::PipelineStageFlagBits::eComputeShader) {
    }
    void record(const vk::CommandBuffer& commands) override {
        if (index_ == 0) {
            stamps_->reset(commands);
        }
        stamps_->write(commands, index_, stage_);
    }

  private:
    std::shared_ptr<Stamps> stamps_;
    uint32_t index_;
    vk::PipelineStageFlagBits stage_;
};

// Gives a tensor of kind `storage` memory of the device, in place of what it has, that can also be copied.
inline void allocate(kp::Tensor& tensor, uint32_t num_words) {
    const vk::Device& device = *(tensor.*open(TensorDevice{}));
    auto& buffer = tensor.*open(TensorBuffer{});
    auto& memory = tensor.*open(TensorMemory{});
    device.destroyBuffer(*buffer);
    tensor.*open(FreesBuffer{}) = false;
    device.freeMemory(*memory);
    tensor.*open(FreesMemory{}) = false;
    const auto usage = vk::BufferUsageFlagBits::eStorageBuffer | vk::BufferUsageFlagBits::eTransferSrc |
                       vk::BufferUsageFlagBits::eTransferDst;
    *buffer = device.createBuffer({{}, vk::DeviceSize{4} * num_words, usage, vk::SharingMode::eExclusive});
    tensor.*open(FreesBuffer{}) = true;
    const auto needs = device.getBufferMemoryRequirements(*buffer);
    const auto kinds = (tensor.*open(TensorCard{}))->getMemoryProperties();
    uint32_t kind = 0;
    while (kind < kinds.memoryTypeCount &&
           !((needs.memoryTypeBits >> kind & 1) &&
             kinds.memoryTypes[kind].propertyFlags & vk::MemoryPropertyFlagBits::eDeviceLocal)) {
        ++kind;
    }
    if (kind == kinds.memoryTypeCount) {
        throw std::runtime_error("no memory of the device holds buffers");
    }
    *memory = device.allocateMemory({needs.size, kind});
    tensor.*open(FreesMemory{}) = true;
    device.bindBufferMemory(*buffer, *memory, 0);
    tensor.*open(TensorSize{}) = num_words;
}

using Semaphores = std::vector<std::shared_ptr<Semaphore>>;

inline std::vector<vk::Semaphore> handles_of(const Semaphores& semaphores) {
    std::vector<vk::Semaphore> handles;
    for (const auto& one : semaphores) {
        handles.push_back(one->handle());
    }
    return handles;
}

// Submits a sequence of the operations above. Some drivers wait for semaphores meanwhile, so that the
// interpreter's lock is not held; a queue takes one submission at a time.
inline void submit(kp::Sequence& sequence, const Semaphores& waits, const Semaphores& signals) {
    if (sequence.isRunning()) {
        throw std::runtime_error("the sequence is running");
    }
    if (sequence.isRecording()) {
        sequence.end();
    }
    const auto before = handles_of(waits), after = handles_of(signals);
    const std::vector<vk::PipelineStageFlags> stages(before.size(), vk::PipelineStageFlagBits::eAllCommands);
    const vk::SubmitInfo info(static_cast<uint32_t>(before.size()), before.data(), stages.data(), 1,
                              (sequence.*open(Commands{})).get(), static_cast<uint32_t>(after.size()),
                              after.data());
    const vk::Device& device = *(sequence.*open(Device{}));
    const vk::Fence fence = device.createFence({});
    try {
        static std::mutex is_submitting;
        const pybind11::gil_scoped_release released;
        const std::lock_guard<std::mutex> one_at_a_time(is_submitting);
        (sequence.*open(Queue{}))->submit(info, fence);
    } catch (...) {
        device.destroyFence(fence);
        throw;
    }
    sequence.*open(Fence{}) = fence;
    sequence.*open(IsRunning{}) = true;
}

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

template <typename Operation>
using Class = pybind11::class_<Operation, kp::OpBase, std::shared_ptr<Operation>>;

inline void add_to(pybind11::module_& module) {
    using pybind11::init;
    Class<Barrier>(module, "LlmdBarrier").def(init<>());
    Class<Dispatch>(module, "LlmdDispatch")
        .def(init<std::shared_ptr<kp::Algorithm>, pybind11::bytes, kp::Workgroup>());
    Class<Copy>(module, "LlmdCopy")
        .def(init<std::shared_ptr<kp::Tensor>, vk::DeviceSize, std::shared_ptr<kp::Tensor>, vk::DeviceSize,
                  vk::DeviceSize>());
    pybind11::class_<Semaphore, std::shared_ptr<Semaphore>>(module, "LlmdSemaphore")
        .def(init<std::shared_ptr<kp::Manager>>());
    pybind11::class_<Stamps, std::shared_ptr<Stamps>>(module, "LlmdStamps")
        .def(init<std::shared_ptr<kp::Manager>, uint32_t>())
        .def("read", &Stamps::read);
    Class<Stamp>(module, "LlmdStamp").def(init<std::shared_ptr<Stamps>, uint32_t, bool>());
    module.def("llmd_allocate", &allocate);
    module.def("llmd_submit", &submit);
    module.def("llmd_wait", &wait);
    module.attr("LLMD_ADDITIONS") = 2;
}

}  // namespace llmd
