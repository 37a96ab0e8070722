// What adapters change in a step: items and changes, in `work`.
//
// An item is (adapter, first, count, 0): up to ROWS rows that have the same adapter, so that its matrices are read once
// for all of them. Their numbers are rows[first .. first + count) of the list at `rows_at`. A change is what an adapter
// adds to one of the `values` of an op, CHANGE words (adapt.py); those of an adapter follow one another.

const uint ROWS = 8;
const uint ITEM = 4;
const uint CHANGE = 14;
layout(push_constant) uniform Push {
    uint items_at, rows_at, changes_at, values, x, x_stride, width, middle_at, ranks, buffer_number;
};

uint adapter, first_row, num_rows; // of the item

bool find_item(uint item) {
    uint at = items_at + ITEM * item;
    adapter = work[at];
    first_row = rows_at + work[at + 1u];
    num_rows = work[at + 2u];
    return num_rows > 0u;
}

uint change_at(uint value) { return changes_at + (adapter * values + value) * CHANGE; }

uint rank_of(uint change) { return work[change]; } // 0: the adapter leaves the value as it is

uint row_number(uint n) { return work[first_row + n]; }

// Where x a^T of a row of an item is, in `work`.
uint middle_of(uint item, uint n, uint change) { return middle_at + (item * ROWS + n) * ranks + work[change + 1u]; }
