// Reads the files that llmd.testing.case_files writes; their layout is described there.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace llmd::test {

constexpr uint64_t kFloat32 = 0;  // what `Array::dtype` says

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
    // Throws std::runtime_error where the file cannot be read or is cut short.
    explicit CaseFile(const std::string& path);

    bool has(const std::string& name) const { return arrays_.count(name) != 0; }
    // Throws std::runtime_error where there is no array of that name.
    const Array& at(const std::string& name) const;

  private:
    std::vector<uint64_t> bytes_;  // words, for the alignment
    std::map<std::string, Array> arrays_;
};

}  // namespace llmd::test
