// <math.h> of C. With C++17, that of C++ also reads 16,000 lines of special functions, which takes longer
// than all else in compiling a small kernel. Kernels need no overloads: they call expf for float, exp for
// double.
#pragma once

#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
