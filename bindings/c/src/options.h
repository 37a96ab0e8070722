// Options that are set by name.
#ifndef LLMD_OPTIONS_H
#define LLMD_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"
#include "fault.h"

enum option_kind {
    OPTION_PLAIN,         // text without control characters, kept as it is
    OPTION_MILLISECONDS,  // kept as it is
    OPTION_SERVE,         // as OPTION_PLAIN; a flag of `llmd serve`
    // The following are kept as JSON.
    OPTION_TEXT,
    OPTION_TEXTS,  // each call adds one
    OPTION_INTEGER,
    OPTION_NUMBER,
    OPTION_BOOLEAN,
    OPTION_JSON,
    OPTION_CHOICE,  // a word, or a JSON object
    OPTION_MEMBERS  // a JSON object, kept without its braces
};

enum { OPTIONS_MAX = 40 };

struct option {
    const char* name;
    enum option_kind kind;
    unsigned calls;  // the calls that send it, a set of bits
};

struct options {
    const struct option* table;
    size_t count;
    struct buffer values[OPTIONS_MAX];  // empty: not set
};

void options_begin(struct options* options, const struct option* table, size_t count);
void options_free(struct options* options);

// Sets an option. LLMD_BAD_ARGUMENT if there is none of that name or the value has the wrong form.
llmd_status options_set(struct options* options, const char* name, const char* value, size_t length,
                        struct fault* fault);

// The value of an option of the table; NULL if it is not set.
const char* options_value(const struct options* options, const char* name);

// The value of an option in milliseconds.
int options_ms(const struct options* options, const char* name, int otherwise);

// Adds the members of a JSON object that a call sends, each followed by a comma.
void options_write(const struct options* options, unsigned call, struct buffer* json);

// Whether a text has ASCII control characters.
bool has_control(const char* value, size_t length);

// The length of a text whose length may be LLMD_NUL. LLMD_BAD_ARGUMENT if it is missing or not UTF-8; `what`
// names it.
llmd_status check_text(const char* what, const char* text, size_t* length, struct fault* fault);

#endif
