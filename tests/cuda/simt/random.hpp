// Random numbers for the order of blocks and threads.
#pragma once

namespace simt {

// xorshift64*: the same numbers everywhere.
class Random {
  public:
    explicit Random(unsigned long long seed) : state(seed * 0x9e3779b97f4a7c15ull + 0x632be59bd9b4e019ull) {}
    unsigned below(unsigned bound) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return (unsigned)((state * 0x2545f4914f6cdd1dull) >> 33) % bound;
    }

  private:
    unsigned long long state;
};

}  // namespace simt
