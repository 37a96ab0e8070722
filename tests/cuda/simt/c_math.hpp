// <math.h> of C. With C++17, that of C++ also reads 16,000 lines of special functions, which takes longer
// than all else in compiling a small kernel. Kernels call no overloaded function of <math.h>.
#pragma once

#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
