#include "json.h"

#include <stdint.h>
#include <string.h>

#include "digits.h"
#include "utf8.h"

// The functions below return where a part ends, or NULL if it does not have the right form.

static const char* after_space(const char* at, const char* end) {
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) at++;
    return at;
}

// `at` is behind the backslash.
static const char* after_escape(const char* at, const char* end) {
    if (at == end) return NULL;
    if (*at != 'u') return *at != '\0' && strchr("\"\\/bfnrt", *at) != NULL ? at + 1 : NULL;
    if (end - at < 5) return NULL;
    for (int i = 1; i < 5; i++)
        if (hex_digit(at[i]) < 0) return NULL;
    return at + 5;
}

static const char* after_string(const char* at, const char* end) {
    if (at == end || *at != '"') return NULL;
    at++;
    while (at != NULL && at < end && *at != '"') {
        if (*at == '\\') {
            at = after_escape(at + 1, end);
        } else if ((unsigned char)*at < 0x20) {
            return NULL;
        } else {
            size_t size = utf8_character(at, (size_t)(end - at));
            at = size == 0 ? NULL : at + size;
        }
    }
    return at == NULL || at == end ? NULL : at + 1;
}

static const char* after_digits(const char* at, const char* end) {
    if (at == end || !is_digit(*at)) return NULL;
    while (at < end && is_digit(*at)) at++;
    return at;
}

static const char* after_number(const char* at, const char* end) {
    if (at < end && *at == '-') at++;
    const bool is_zero = at < end && *at == '0';
    at = is_zero ? at + 1 : after_digits(at, end);
    if (at != NULL && at < end && *at == '.') at = after_digits(at + 1, end);
    if (at != NULL && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        at = after_digits(at, end);
    }
    return at;
}

static const char* after_literal(const char* at, const char* end) {
    static const char* const literals[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        const size_t length = strlen(literals[i]);
        if ((size_t)(end - at) >= length && memcmp(at, literals[i], length) == 0) return at + length;
    }
    return NULL;
}

static const char* after_value(const char* at, const char* end, int depth);

static const char* after_key(const char* at, const char* end) {
    at = after_string(at, end);
    if (at == NULL) return NULL;
    at = after_space(at, end);
    return at < end && *at == ':' ? after_space(at + 1, end) : NULL;
}

// An object or an array; `at` is at its bracket.
static const char* after_container(const char* at, const char* end, int depth) {
    const bool is_object = *at == '{';
    const char close = is_object ? '}' : ']';
    at = after_space(at + 1, end);
    if (at < end && *at == close) return at + 1;
    while (at < end) {
        if (is_object) at = after_key(at, end);
        if (at != NULL) at = after_value(at, end, depth - 1);
        if (at == NULL) return NULL;
        at = after_space(at, end);
        if (at < end && *at == close) return at + 1;
        if (at == end || *at != ',') return NULL;
        at = after_space(at + 1, end);
    }
    return NULL;
}

static const char* after_value(const char* at, const char* end, int depth) {
    if (at == end) return NULL;
    switch (*at) {
        case '{':
        case '[':
            return depth == 0 ? NULL : after_container(at, end, depth);
        case '"':
            return after_string(at, end);
        case 't':
        case 'f':
        case 'n':
            return after_literal(at, end);
        default:
            return after_number(at, end);
    }
}

bool json_parse(const char* text, size_t length, struct json* value) {
    if (length == 0) return false;
    const char* end = text + length;
    const char* start = after_space(text, end);
    const char* stop = after_value(start, end, JSON_DEPTH);
    if (stop == NULL || after_space(stop, end) != end) return false;
    *value = (struct json){start, (size_t)(stop - start)};
    return true;
}

static bool starts_with(struct json value, char byte) { return value.length > 0 && *value.text == byte; }

bool json_is_object(struct json value) { return starts_with(value, '{'); }
bool json_is_array(struct json value) { return starts_with(value, '['); }
bool json_is_string(struct json value) { return starts_with(value, '"'); }
bool json_is_number(struct json value) {
    return value.length > 0 && (is_digit(*value.text) || *value.text == '-');
}

bool json_member(struct json object, const char* name, struct json* value) {
    if (!json_is_object(object)) return false;
    const size_t length = strlen(name);
    const char* end = object.text + object.length;
    const char* at = after_space(object.text + 1, end);
    while (at < end && *at == '"') {
        const char* start = after_key(at, end);
        const char* stop = start == NULL ? NULL : after_value(start, end, JSON_DEPTH);
        if (stop == NULL) return false;
        if ((size_t)(end - at) > length + 1 && memcmp(at + 1, name, length) == 0 && at[length + 1] == '"') {
            *value = (struct json){start, (size_t)(stop - start)};
            return true;
        }
        at = after_space(stop, end);
        if (at < end && *at == ',') at = after_space(at + 1, end);
    }
    return false;
}

struct json json_inside(struct json object) {
    const char* end = object.text + object.length - 1;
    const char* start = after_space(object.text + 1, end);
    while (end > start && after_space(end - 1, end) == end) end--;
    return (struct json){start, (size_t)(end - start)};
}

bool json_next(struct json array, struct json* item) {
    if (!json_is_array(array)) return false;
    const char* end = array.text + array.length;
    const char* at = after_space(item->text == NULL ? array.text + 1 : item->text + item->length, end);
    if (item->text != NULL && at < end && *at == ',') at = after_space(at + 1, end);
    if (at == end || *at == ']') return false;
    const char* stop = after_value(at, end, JSON_DEPTH);
    if (stop == NULL) return false;
    *item = (struct json){at, (size_t)(stop - at)};
    return true;
}

static uint32_t code_unit(const char* digits) {
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) code = code << 4 | (uint32_t)hex_digit(digits[i]);
    return code;
}

// Adds the character of an escape `\uXXXX`, or of two that are a surrogate pair; returns where it ends.
static const char* add_unicode(const char* at, const char* end, struct buffer* text) {
    uint32_t code = code_unit(at);
    at += 4;
    if (code >= 0xD800 && code <= 0xDBFF && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        const uint32_t low = code_unit(at + 2);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            at += 6;
        }
    }
    char character[UTF8_MAX];
    buffer_add(text, character, utf8_encode(code, character));
    return at;
}

bool json_text(struct json string, struct buffer* text) {
    if (!json_is_string(string) || string.length < 2) return false;
    const char* at = string.text + 1;
    const char* end = string.text + string.length - 1;
    while (at < end) {
        const char* escape = memchr(at, '\\', (size_t)(end - at));
        const char* plain = escape == NULL ? end : escape;
        buffer_add(text, at, (size_t)(plain - at));
        if (escape == NULL) break;
        static const char names[] = "bfnrt", meanings[] = "\b\f\n\r\t";
        const char* name = strchr(names, escape[1]);
        at = escape + 2;
        if (escape[1] == 'u')
            at = add_unicode(at, end, text);
        else
            buffer_add(text, name == NULL ? escape + 1 : meanings + (name - names), 1);
    }
    return !text->failed;
}

bool json_count(struct json number, size_t most, size_t* count) {
    size_t sum = 0;
    for (size_t i = 0; i < number.length; i++) {
        if (!is_digit(number.text[i])) return false;
        const size_t digit = (size_t)(number.text[i] - '0');
        if (sum > (most - digit) / 10 || digit > most) return false;
        sum = sum * 10 + digit;
    }
    *count = sum;
    return number.length > 0;
}

void json_write(struct buffer* buffer, const char* text, size_t length) {
    static const char digits[] = "0123456789abcdef";
    buffer_add(buffer, "\"", 1);
    size_t start = 0;
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
        buffer_add(buffer, text + start, i - start);
        start = i + 1;
        const char escaped[] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
        buffer_add(buffer, escaped, sizeof escaped);
    }
    buffer_add(buffer, text + start, length - start);
    buffer_add(buffer, "\"", 1);
}
