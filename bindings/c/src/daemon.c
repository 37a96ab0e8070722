#include <stdlib.h>
#include <string.h>

#include "handles.h"

enum { CONNECT_MS = 5000, SILENCE_MS = 600000 };

static const struct option table[] = {
    {"address", OPTION_PLAIN, 0},
    {"api_key", OPTION_PLAIN, 0},
    {"connect_timeout_ms", OPTION_MILLISECONDS, 0},
    {"silence_timeout_ms", OPTION_MILLISECONDS, 0},
    {"start_timeout_ms", OPTION_MILLISECONDS, 0},
    {"program", OPTION_PLAIN, 0},
    // Flags of `llmd serve`.
    {"activations", OPTION_SERVE, 0},
    {"config", OPTION_SERVE, 0},
    {"device", OPTION_SERVE, 0},
    {"keep_alive", OPTION_SERVE, 0},
    {"kv_dtype", OPTION_SERVE, 0},
    {"kv_memory", OPTION_SERVE, 0},
    {"kv_spool", OPTION_SERVE, 0},
    {"max_ctx", OPTION_SERVE, 0},
    {"max_memory", OPTION_SERVE, 0},
    {"prefill_chunk", OPTION_SERVE, 0},
    {"quant", OPTION_SERVE, 0},
    {"slots", OPTION_SERVE, 0},
    {"split", OPTION_SERVE, 0},
    {"threads", OPTION_SERVE, 0},
    {"weight_cache", OPTION_SERVE, 0},
};
enum { OPTION_COUNT = sizeof table / sizeof *table };

int llmd_abi_version(void) { return LLMD_ABI_VERSION; }

const char* llmd_version(void) { return LLMD_LIBRARY_VERSION; }

llmd_status llmd_open_abi(int abi_version, llmd_daemon** daemon) {
    if (daemon == NULL) return LLMD_BAD_ARGUMENT;
    *daemon = NULL;
    if (abi_version != LLMD_ABI_VERSION) return LLMD_BAD_ABI;
    llmd_daemon* made = calloc(1, sizeof *made);
    if (made == NULL) return LLMD_NO_MEMORY;
    options_begin(&made->options, table, OPTION_COUNT);
    made->child = (struct private_daemon){.input = -1, .output = -1};
    *daemon = made;
    return LLMD_OK;
}

llmd_status llmd_set(llmd_daemon* daemon, const char* option, const char* value, size_t length) {
    if (daemon == NULL) return LLMD_BAD_ARGUMENT;
    clear_fault(&daemon->fault);
    return options_set(&daemon->options, option, value, length, &daemon->fault);
}

static llmd_status set_key(llmd_daemon* daemon, const char* key) {
    free(daemon->endpoint.key);
    daemon->endpoint.key = NULL;
    if (key == NULL || *key == '\0') return LLMD_OK;
    if (has_control(key, strlen(key)))
        return set_fault(&daemon->fault, LLMD_BAD_ARGUMENT, "", "LLMD_API_KEY contains a control character");
    daemon->endpoint.key = strdup(key);
    return daemon->endpoint.key == NULL ? out_of_memory(&daemon->fault) : LLMD_OK;
}

llmd_status set_timeouts_and_key(llmd_daemon* daemon) {
    clear_fault(&daemon->fault);
    if (daemon->child.process != 0)
        return set_fault(&daemon->fault, LLMD_BAD_ARGUMENT, "open another handle",
                         "this handle has a private daemon");
    daemon->has_address = false;
    daemon->endpoint.connect_ms = options_ms(&daemon->options, "connect_timeout_ms", CONNECT_MS);
    daemon->endpoint.silence_ms = options_ms(&daemon->options, "silence_timeout_ms", SILENCE_MS);
    const char* key = options_value(&daemon->options, "api_key");
    return set_key(daemon, key == NULL ? getenv("LLMD_API_KEY") : key);
}

llmd_status check_has_daemon(llmd_daemon* daemon) {
    if (daemon->has_address) return LLMD_OK;
    return set_fault(&daemon->fault, LLMD_BAD_ARGUMENT, "call llmd_connect or llmd_load first",
                     "the handle has no daemon");
}

static llmd_status try_address(llmd_daemon* daemon) {
    struct connection connection;
    const llmd_status status = open_connection(&connection, &daemon->endpoint, -1, &daemon->fault);
    if (status != LLMD_OK) return status;
    close_connection(&connection);
    clear_fault(&daemon->fault);
    daemon->has_address = true;
    return LLMD_OK;
}

static llmd_status find_daemon(llmd_daemon* daemon) {
    struct address places[MOST_PLACES];
    const size_t count = usual_places(places);
    char tried[MESSAGE_SIZE] = "";
    for (size_t i = 0; i < count; i++) {
        daemon->endpoint.address = places[i];
        if (try_address(daemon) == LLMD_OK) return LLMD_OK;
        const size_t used = strlen(tried);
        strncat(tried, i == 0 ? "" : ", ", sizeof tried - 1 - used);
        strncat(tried, places[i].shown, sizeof tried - 1 - strlen(tried));
    }
    return set_fault(&daemon->fault, LLMD_UNREACHABLE, daemon->fault.hint, "no daemon answers at %s", tried);
}

llmd_status llmd_connect(llmd_daemon* daemon) {
    if (daemon == NULL) return LLMD_BAD_ARGUMENT;
    llmd_status status = set_timeouts_and_key(daemon);
    if (status != LLMD_OK) return status;
    const char *option = options_value(&daemon->options, "address"), *variable = getenv("LLMD_HOST");
    const bool is_named = option != NULL || (variable != NULL && *variable != '\0');
    if (!is_named) return find_daemon(daemon);
    status =
        parse_address(option == NULL ? variable : option, option == NULL ? "LLMD_HOST" : "the option address",
                      &daemon->endpoint.address, &daemon->fault);
    return status == LLMD_OK ? try_address(daemon) : status;
}

const char* llmd_address(const llmd_daemon* daemon) {
    return daemon == NULL || !daemon->has_address ? NULL : daemon->endpoint.address.shown;
}

const char* llmd_message(const llmd_daemon* daemon) {
    return daemon == NULL ? "the handle is NULL" : daemon->fault.message;
}

const char* llmd_hint(const llmd_daemon* daemon) { return daemon == NULL ? "" : daemon->fault.hint; }

void llmd_close(llmd_daemon* daemon) {
    if (daemon == NULL) return;
    end_private_daemon(&daemon->child);
    options_free(&daemon->options);
    buffer_free(&daemon->names);
    free(daemon->endpoint.key);
    free(daemon);
}
