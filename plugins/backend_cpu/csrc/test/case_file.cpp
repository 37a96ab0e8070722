#include "test/case_file.hpp"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace llmd::test {

namespace {

constexpr size_t kItemSizes[] = {4, 8, 1, 2, 4, 4, 8, 1, 1};

class Cursor {
  public:
    Cursor(const uint8_t* data, size_t size) : data_(data), size_(size) {}

    const uint8_t* take(size_t bytes) {
        if (bytes > size_ - at_) throw std::runtime_error("the case file is cut short");
        at_ += bytes;
        return data_ + at_ - bytes;
    }
    uint64_t number() {
        uint64_t value;
        std::memcpy(&value, take(sizeof value), sizeof value);
        return value;
    }
    void align() { take((64 - at_ % 64) % 64); }

  private:
    const uint8_t* data_;
    size_t size_;
    size_t at_ = 0;
};

}  // namespace

int64_t Array::count() const {
    int64_t product = 1;
    for (const int64_t axis : shape) product *= axis;
    return product;
}

CaseFile::CaseFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) throw std::runtime_error("cannot read " + path);
    const auto size = static_cast<size_t>(file.tellg());
    bytes_.resize((size + 7) / 8);
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes_.data()), static_cast<std::streamsize>(size));
    Cursor cursor(reinterpret_cast<const uint8_t*>(bytes_.data()), size);
    if (std::memcmp(cursor.take(8), "LLMDCASE", 8) != 0) throw std::runtime_error(path + " is no case file");
    for (uint64_t left = cursor.number(); left > 0; --left) {
        const uint64_t length = cursor.number();
        const std::string name(reinterpret_cast<const char*>(cursor.take(length)), length);
        Array array;
        array.dtype = cursor.number();
        for (uint64_t axes = cursor.number(); axes > 0; --axes) {
            array.shape.push_back(static_cast<int64_t>(cursor.number()));
        }
        cursor.align();
        array.data = cursor.take(static_cast<size_t>(array.count()) * kItemSizes[array.dtype]);
        arrays_[name] = array;
    }
}

const Array& CaseFile::at(const std::string& name) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) throw std::runtime_error("the case file has no array " + name);
    return found->second;
}

}  // namespace llmd::test
