// Slots of a state group: the states of a layer are [slots][slot_words], each the `taps` - 1 rows before the next one,
// [row][queries, keys and values], then a matrix [key_dim][value_dim] of each head.
//
// A sequence starts from the slot table[sequence][0] (from zeros if that is -1), and leaves its state in the slot
// table[sequence][1], which may be the same one. The includer declares `table`, `states_at` and `slot_words`.

struct Slots {
    bool is_new; // the state before is zero
    uint from, to;
};

Slots slots_of(uint sequence) {
    uint at = table_at(table) + 2u * sequence, from = work[at];
    return Slots(from == NONE, states_at + from * slot_words, states_at + work[at + 1u] * slot_words);
}
