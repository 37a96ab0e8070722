// The memory of a stage as words: slots, the arrays of a step, scratch. Every shader has it as binding 0.
//
// A slot is float32 [rows][stride]; a stride is the width of the slot, rounded up to 4. The words between are 0.
// The arrays of a step begin with the numbers of its rows, sequences and output rows. A block table is described by its
// distance from the description, and its width.

layout(binding = 0) buffer Work { uint work[]; };

const uint NONE = 0xffffffffu;

float number(uint at) { return uintBitsToFloat(work[at]); }

void put(uint at, float value) { work[at] = floatBitsToUint(value); }

uint table_at(uint description) { return description + work[description]; }
