// Reads the files that llmd.testing.case_files writes, which describes their layout.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llmd::test {

constexpr uint64_t kFloat32 = 0;  // a value of `Array::dtype`

struct Array {
    uint64_t dtype = 0;
    std::vector<int64_t> shape;
    const uint8_t* data = nullptr;

    int64_t count() const;
    template <class T>
    const T* as() const {
        return reinterpret_cast<const T*>(data);
    }
    std::vector<int64_t> int64s() const { return {as<int64_t>(), as<int64_t>() + count()}; }
    std::vector<double> doubles() const { return {as<double>(), as<double>() + count()}; }
};

class CaseFile {
  public:
    // Throws std::runtime_error if the file cannot be read or is truncated.
    explicit CaseFile(const std::string& path);

    bool has(const std::string& name) const { return arrays_.count(name) != 0; }
    // Throws std::runtime_error if there is no array of that name.
    const Array& at(const std::string& name) const;

  private:
    std::vector<uint64_t> bytes_;  // words, for their alignment
    std::map<std::string, Array> arrays_;
};

}  // namespace llmd::test
