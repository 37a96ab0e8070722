#include "nearest.h"

enum { MOST = 63 };

static size_t least(size_t one, size_t other) { return one < other ? one : other; }

static size_t counted(const char* name) {
    size_t length = 0;
    while (length < MOST && name[length] != '\0') length++;
    return length;
}

size_t edit_steps(const char* one, const char* other) {
    const size_t rows = counted(one), columns = counted(other);
    size_t steps[MOST + 1][MOST + 1];
    for (size_t i = 0; i <= rows; i++) steps[i][0] = i;
    for (size_t j = 0; j <= columns; j++) steps[0][j] = j;
    for (size_t i = 1; i <= rows; i++) {
        for (size_t j = 1; j <= columns; j++) {
            const size_t replaced = steps[i - 1][j - 1] + (one[i - 1] != other[j - 1]);
            steps[i][j] = least(replaced, least(steps[i - 1][j], steps[i][j - 1]) + 1);
            const int swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            if (swapped) steps[i][j] = least(steps[i][j], steps[i - 2][j - 2] + 1);
        }
    }
    return steps[rows][columns];
}
