#include "options.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "nearest.h"
#include "utf8.h"

void options_begin(struct options* options, const struct option* table, size_t count) {
    memset(options, 0, sizeof *options);
    options->table = table;
    options->count = count;
}

void options_free(struct options* options) {
    for (size_t i = 0; i < options->count; i++) buffer_free(&options->values[i]);
}

llmd_status check_text(const char* what, const char* text, size_t* length, struct fault* fault) {
    if (text == NULL && *length != 0) return set_fault(fault, LLMD_BAD_ARGUMENT, "", "%s is NULL", what);
    if (*length == LLMD_NUL) *length = strlen(text);
    const size_t valid = utf8_valid(text, *length);
    if (valid == *length) return LLMD_OK;
    return set_fault(fault, LLMD_BAD_ARGUMENT, "convert the text to UTF-8", "%s is not UTF-8 at byte %zu",
                     what, valid);
}

static llmd_status wrong(const struct option* option, const char* form, struct fault* fault) {
    return set_fault(fault, LLMD_BAD_ARGUMENT, "", "the value of the option %s must be %s", option->name,
                     form);
}

bool has_control(const char* value, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7F) return true;
    return false;
}

static bool is_integer(struct json number) {
    if (!json_is_number(number)) return false;
    for (size_t i = 0; i < number.length; i++)
        if (strchr(".eE", number.text[i]) != NULL) return false;
    return true;
}

static llmd_status set_plain(const struct option* option, const char* value, size_t length,
                             struct buffer* kept, struct fault* fault) {
    if (has_control(value, length)) return wrong(option, "text without control characters", fault);
    size_t ms;
    if (option->kind == OPTION_MILLISECONDS &&
        (!json_count((struct json){value, length}, INT_MAX, &ms) || ms == 0))
        return wrong(option, "a whole number of milliseconds above 0", fault);
    buffer_clear(kept);
    buffer_add(kept, value, length);
    return LLMD_OK;
}

// A value that is JSON already.
static llmd_status set_json(const struct option* option, const char* value, size_t length,
                            struct buffer* kept, struct fault* fault) {
    struct json json;
    const bool is_json = json_parse(value, length, &json);
    switch (option->kind) {
        case OPTION_INTEGER:
            if (!is_json || !is_integer(json)) return wrong(option, "a whole number", fault);
            break;
        case OPTION_NUMBER:
            if (!is_json || !json_is_number(json)) return wrong(option, "a number such as 0.7", fault);
            break;
        case OPTION_BOOLEAN:
            if (!is_json || (*json.text != 't' && *json.text != 'f'))
                return wrong(option, "true or false", fault);
            break;
        case OPTION_MEMBERS:
        case OPTION_CHOICE:
            if (!is_json || !json_is_object(json)) return wrong(option, "a JSON object", fault);
            break;
        default:
            if (!is_json) return wrong(option, "JSON", fault);
    }
    buffer_clear(kept);
    if (option->kind == OPTION_MEMBERS) json = json_inside(json);
    buffer_add(kept, json.text, json.length);
    return LLMD_OK;
}

static llmd_status set_value(const struct option* option, const char* value, size_t length,
                             struct buffer* kept, struct fault* fault) {
    if (option->kind <= OPTION_SERVE) return set_plain(option, value, length, kept, fault);
    const bool is_text = option->kind == OPTION_TEXT || option->kind == OPTION_TEXTS ||
                         (option->kind == OPTION_CHOICE && (length == 0 || *value != '{'));
    if (!is_text) return set_json(option, value, length, kept, fault);
    if (option->kind != OPTION_TEXTS) buffer_clear(kept);
    if (kept->length > 0) buffer_add(kept, ",", 1);
    json_write(kept, value, length);
    return LLMD_OK;
}

static llmd_status unknown(const struct options* options, const char* name, struct fault* fault) {
    const char* best = options->table[0].name;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < options->count; i++) {
        const size_t steps = edit_steps(name, options->table[i].name);
        if (steps < least) {
            least = steps;
            best = options->table[i].name;
        }
    }
    return set_fault(fault, LLMD_BAD_ARGUMENT, "docs/c-api.md lists all options",
                     "there is no option \"%.100s\"; the nearest is %s", name, best);
}

static const struct buffer* find(const struct options* options, const char* name) {
    for (size_t i = 0; i < options->count; i++)
        if (strcmp(options->table[i].name, name) == 0) return &options->values[i];
    return NULL;
}

llmd_status options_set(struct options* options, const char* name, const char* value, size_t length,
                        struct fault* fault) {
    if (name == NULL) return set_fault(fault, LLMD_BAD_ARGUMENT, "", "the name of the option is NULL");
    const struct buffer* found = find(options, name);
    if (found == NULL) return unknown(options, name, fault);
    const size_t place = (size_t)(found - options->values);
    struct buffer* kept = &options->values[place];
    if (value == NULL) {
        buffer_clear(kept);
        return LLMD_OK;
    }
    llmd_status status = check_text("the value of the option", value, &length, fault);
    if (status == LLMD_OK) status = set_value(&options->table[place], value, length, kept, fault);
    if (status == LLMD_OK && kept->failed) {
        buffer_clear(kept);
        status = out_of_memory(fault);
    }
    return status;
}

const char* options_value(const struct options* options, const char* name) {
    const struct buffer* value = find(options, name);
    return value == NULL || value->length == 0 ? NULL : value->data;
}

int options_ms(const struct options* options, const char* name, int otherwise) {
    const char* value = options_value(options, name);
    return value == NULL ? otherwise : atoi(value);
}

void options_write(const struct options* options, unsigned call, struct buffer* json) {
    for (size_t i = 0; i < options->count; i++) {
        const struct option* option = &options->table[i];
        const struct buffer* value = &options->values[i];
        if (value->length == 0 || (option->calls & call) == 0) continue;
        if (option->kind != OPTION_MEMBERS) {
            buffer_add(json, "\"", 1);
            buffer_add_text(json, option->name);
            buffer_add(json, "\":", 2);
        }
        if (option->kind == OPTION_TEXTS) buffer_add(json, "[", 1);
        buffer_add(json, value->data, value->length);
        if (option->kind == OPTION_TEXTS) buffer_add(json, "]", 1);
        buffer_add(json, ",", 1);
    }
}
