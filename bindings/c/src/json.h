// Reads and writes JSON (RFC 8259) without building a tree: a value is a slice of the text that it was found
// in.
//
// Text is checked as it is read: strings are UTF-8, numbers and literals have their exact form, and values
// nest at most JSON_DEPTH deep. Numbers are never converted to floating point, since strtod depends on the
// locale.
#ifndef LLMD_JSON_H
#define LLMD_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "buffer.h"

enum { JSON_DEPTH = 64 };

struct json {
    const char* text;
    size_t length;
};

// Checks that the text is one JSON value and returns it without the space around it.
bool json_parse(const char* text, size_t length, struct json* value);

bool json_is_object(struct json value);
bool json_is_array(struct json value);
bool json_is_string(struct json value);
bool json_is_number(struct json value);

// Finds a member of an object that json_parse has checked. A key that is written with escapes is not found.
bool json_member(struct json object, const char* name, struct json* value);

// What is between the braces of an object, without the space around it.
struct json json_inside(struct json object);

// Steps through an array that json_parse has checked: `item` is empty ({NULL, 0}) before the first step.
bool json_next(struct json array, struct json* item);

// Adds the text of a string. Halves of surrogate pairs that stand alone become U+FFFD.
bool json_text(struct json string, struct buffer* text);

// Converts a whole number; false if it is negative, has a fraction or is larger than `most`.
bool json_count(struct json number, size_t most, size_t* count);

// Adds a text as a JSON string. It must be UTF-8.
void json_write(struct buffer* buffer, const char* text, size_t length);

#endif
