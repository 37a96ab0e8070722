#include <stdlib.h>
#include <string.h>

#include "handles.h"

enum { START_MS = 600000 };

static void free_flags(char** flags) {
    for (size_t i = 0; flags != NULL && flags[i] != NULL; i++) free(flags[i]);
    free(flags);
}

// The options that are flags of `llmd serve`, as `--flag=value`. The result and its texts are freed by the
// caller.
static char** serve_flags(const struct options* options, size_t* count) {
    char** flags = calloc(options->count + 1, sizeof *flags);
    *count = 0;
    for (size_t i = 0; i < options->count && flags != NULL; i++) {
        if (options->table[i].kind != OPTION_SERVE || options->values[i].length == 0) continue;
        struct buffer flag = {0};
        buffer_add_text(&flag, "--");
        buffer_add_text(&flag, options->table[i].name);
        for (char* at = flag.data; at != NULL && *at != '\0'; at++)
            if (*at == '_') *at = '-';
        buffer_add(&flag, "=", 1);
        buffer_add_text(&flag, options->values[i].data);
        flags[(*count)++] = flag.data;
        if (!flag.failed) continue;
        free_flags(flags);
        return NULL;
    }
    return flags;
}

llmd_status llmd_load(llmd_daemon* daemon, const char* model, size_t length) {
    if (daemon == NULL) return LLMD_BAD_ARGUMENT;
    llmd_status status = set_timeouts_and_key(daemon);
    if (status == LLMD_OK) status = check_text("the model", model, &length, &daemon->fault);
    if (status != LLMD_OK) return status;
    if (length == 0 || memchr(model, '\0', length) != NULL)
        return set_fault(&daemon->fault, LLMD_BAD_ARGUMENT, "name a model that `llmd list` shows, or a path",
                         "the model has no name");
    struct buffer name = {0};
    size_t count;
    buffer_add(&name, model, length);
    char** flags = serve_flags(&daemon->options, &count);
    const char* program = options_value(&daemon->options, "program");
    const struct daemon_command command = {program == NULL ? "llmd" : program, flags, count, name.data,
                                           options_ms(&daemon->options, "start_timeout_ms", START_MS)};
    const bool has_memory = flags != NULL && !name.failed;
    status = has_memory
                 ? start_private_daemon(&daemon->child, &command, &daemon->endpoint.address, &daemon->fault)
                 : out_of_memory(&daemon->fault);
    free_flags(flags);
    buffer_free(&name);
    daemon->has_address = status == LLMD_OK;
    return status;
}
