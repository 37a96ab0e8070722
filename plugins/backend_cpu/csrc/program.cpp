#include "program.hpp"

#include <stdexcept>

namespace llmd {

namespace {

class Reader {
  public:
    explicit Reader(const std::vector<int64_t>& records) : records_(records) {}

    bool at_end() const { return next_ == records_.size(); }
    int64_t number() {
        if (at_end()) throw std::invalid_argument("the records end inside an instruction");
        return records_[next_++];
    }
    std::vector<int64_t> list() {
        const int64_t count = number();
        if (count < 0 || static_cast<size_t>(count) > records_.size() - next_) {
            throw std::invalid_argument("a list in the records extends beyond their end");
        }
        const auto first = records_.begin() + static_cast<int64_t>(next_);
        next_ += static_cast<size_t>(count);
        return {first, first + count};
    }

  private:
    const std::vector<int64_t>& records_;
    size_t next_ = 0;
};

Op parse_op(Reader& reader, const std::vector<double>& floats) {
    const int64_t code = reader.number();
    if (code < 0 || code > static_cast<int64_t>(OpKind::kMixStreams)) {
        throw std::invalid_argument("the records contain the unknown op code " + std::to_string(code));
    }
    Op op;
    op.kind = static_cast<OpKind>(code);
    op.inputs = reader.list();
    op.outputs = reader.list();
    op.weights = reader.list();
    op.ints = reader.list();
    for (const int64_t index : reader.list()) op.floats.push_back(floats.at(static_cast<size_t>(index)));
    return op;
}

}  // namespace

std::vector<Op> parse_ops(const std::vector<int64_t>& records, const std::vector<double>& floats) {
    std::vector<Op> ops;
    for (Reader reader(records); !reader.at_end();) {
        for (int64_t left = reader.number(); left > 0; --left) ops.push_back(parse_op(reader, floats));
    }
    return ops;
}

}  // namespace llmd
