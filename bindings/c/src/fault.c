#include "fault.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

void clear_fault(struct fault* fault) {
    fault->status = LLMD_OK;
    fault->message[0] = '\0';
    fault->hint[0] = '\0';
}

llmd_status set_fault(struct fault* fault, llmd_status status, const char* hint, const char* format, ...) {
    // The hint and the arguments may point into the fault.
    char message[MESSAGE_SIZE], kept[HINT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(kept, sizeof kept, "%s", hint);
    fault->status = status;
    memcpy(fault->message, message, sizeof message);
    make_utf8(fault->message);
    memcpy(fault->hint, kept, sizeof kept);
    make_utf8(fault->hint);
    return status;
}

llmd_status out_of_memory(struct fault* fault) {
    return set_fault(fault, LLMD_NO_MEMORY, "", "the program is out of memory");
}

llmd_status system_fault(struct fault* fault, const char* what, int error) {
    char text[128];
    return set_fault(fault, LLMD_SYSTEM, "", "cannot %s: %s", what, error_text(error, text, sizeof text));
}

// strerror_r has two forms; which one is declared depends on the C library.
static const char* chosen(int result, const char* text) { return result == 0 ? text : "unknown error"; }
static const char* chosen_gnu(const char* result, const char* text) {
    (void)text;
    return result;
}

const char* error_text(int error, char* text, size_t size) {
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
    (void)chosen;
    return chosen_gnu(strerror_r(error, text, size), text);
#else
    (void)chosen_gnu;
    return chosen(strerror_r(error, text, size), text);
#endif
}
