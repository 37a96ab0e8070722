// What went wrong, for the user of a handle.
#ifndef LLMD_FAULT_H
#define LLMD_FAULT_H

#include "llmd.h"

enum { MESSAGE_SIZE = 1024, HINT_SIZE = 256 };

struct fault {
    llmd_status status;
    char message[MESSAGE_SIZE];
    char hint[HINT_SIZE];
};

#if defined(__GNUC__)
#define FORMATTED(place, first) __attribute__((format(printf, place, first)))
#else
#define FORMATTED(place, first)
#endif

void clear_fault(struct fault* fault);

// Stores the fault and returns its status. The message is cut if it is too long, and bytes that are not UTF-8
// become question marks.
llmd_status set_fault(struct fault* fault, llmd_status status, const char* hint, const char* format, ...)
    FORMATTED(4, 5);

llmd_status out_of_memory(struct fault* fault);

// The error number of a system call that failed; `what` says what it was to do.
llmd_status system_fault(struct fault* fault, const char* what, int error);

// Copies the description of an error number. Unlike strerror it may run in several threads at a time.
const char* error_text(int error, char* text, size_t size);

#endif
