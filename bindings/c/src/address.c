#include "address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMS "write HOST:PORT, http://HOST:PORT or unix:PATH"
#define DEFAULT_HOST "127.0.0.1"
#define DEFAULT_PORT "8642"
#define SYSTEM_SOCKET "/run/llmd/llmd.sock"

static bool is_port(const char* text, size_t length) {
    return length > 0 && length < PORT_SIZE && strspn(text, "0123456789") >= length && atol(text) <= 65535;
}

static void set_tcp(struct address* address, const char* host, size_t length, const char* port) {
    address->is_unix = false;
    snprintf(address->host, sizeof address->host, "%.*s", (int)length, host);
    snprintf(address->port, sizeof address->port, "%s", port);
    const char* form = strchr(address->host, ':') == NULL ? "%s:%s" : "[%s]:%s";
    snprintf(address->shown, sizeof address->shown, form, address->host, address->port);
}

static llmd_status set_unix(struct address* address, const char* path, const char* origin,
                            struct fault* fault) {
    if (strncmp(path, "//", 2) == 0) path += 2;
    const char* home = strncmp(path, "~/", 2) == 0 ? getenv("HOME") : NULL;
    if (home != NULL) path++;
    const int length = snprintf(address->path, PATH_SIZE, "%s%s", home == NULL ? "" : home, path);
    if (*path == '\0')
        return set_fault(fault, LLMD_BAD_ARGUMENT, FORMS, "%s has no path behind unix:", origin);
    if (length >= PATH_SIZE)
        return set_fault(fault, LLMD_BAD_ARGUMENT, "use a shorter path",
                         "the path of the socket has %d bytes, but the system allows %d", length,
                         PATH_SIZE - 1);
    address->is_unix = true;
    snprintf(address->shown, sizeof address->shown, "unix:%s", address->path);
    return LLMD_OK;
}

static llmd_status not_an_address(const char* text, const char* origin, struct fault* fault) {
    return set_fault(fault, LLMD_BAD_ARGUMENT, FORMS, "%s is \"%s\", which is not an address", origin, text);
}

// Splits HOST, PORT, HOST:PORT, [IPV6], [IPV6]:PORT or IPV6.
static bool parse_tcp(const char* text, size_t length, struct address* address) {
    if (is_port(text, length)) {
        char port[PORT_SIZE];
        snprintf(port, sizeof port, "%.*s", (int)length, text);
        set_tcp(address, DEFAULT_HOST, strlen(DEFAULT_HOST), port);
        return true;
    }
    const char* end = text + length;
    const char *host = text, *host_end = end, *rest = end;
    if (*text == '[') {
        host = text + 1;
        host_end = memchr(text, ']', length);
        if (host_end == NULL) return false;
        rest = host_end + 1;
    } else {
        const char* colon = memchr(text, ':', length);
        const bool is_ipv6 = colon != NULL && memchr(colon + 1, ':', (size_t)(end - colon - 1)) != NULL;
        if (colon != NULL && !is_ipv6) host_end = rest = colon;
    }
    const size_t host_length = (size_t)(host_end - host);
    if (host_length == 0 || host_length >= HOST_SIZE || strcspn(host, " \t\r\n/?#@") < host_length)
        return false;
    char port[PORT_SIZE] = DEFAULT_PORT;
    if (rest != end) {
        if (*rest != ':' || !is_port(rest + 1, (size_t)(end - rest - 1))) return false;
        snprintf(port, sizeof port, "%.*s", (int)(end - rest - 1), rest + 1);
    }
    set_tcp(address, host, host_length, port);
    return true;
}

llmd_status parse_address(const char* text, const char* origin, struct address* address,
                          struct fault* fault) {
    memset(address, 0, sizeof *address);
    if (strncmp(text, "unix:", 5) == 0) return set_unix(address, text + 5, origin, fault);
    if (strncmp(text, "https://", 8) == 0)
        return set_fault(fault, LLMD_BAD_ARGUMENT,
                         "use its Unix socket, plain http:// on this machine, or a tunnel",
                         "%s is \"%s\": this library does not support TLS", origin, text);
    const char* start = strncmp(text, "http://", 7) == 0 ? text + 7 : text;
    size_t length = strlen(start);
    if (start != text && length > 0 && start[length - 1] == '/') length--;
    if (length == 0 || !parse_tcp(start, length, address)) return not_an_address(text, origin, fault);
    return LLMD_OK;
}

// The user's socket: in the runtime folder, else in the state folder. False if there is no home either.
static bool user_socket(char* text, size_t size) {
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *state = getenv("XDG_STATE_HOME"),
               *home = getenv("HOME");
    int length = 0;
    if (runtime != NULL && *runtime == '/')
        length = snprintf(text, size, "unix:%s/llmd/llmd.sock", runtime);
    else if (state != NULL && *state == '/')
        length = snprintf(text, size, "unix:%s/llmd/run/llmd.sock", state);
    else if (home != NULL && *home == '/')
        length = snprintf(text, size, "unix:%s/.local/state/llmd/run/llmd.sock", home);
    return length > 0 && (size_t)length < size;
}

size_t usual_places(struct address places[MOST_PLACES]) {
    char user[PATH_SIZE + 8];
    struct fault ignored;
    size_t count = 0;
    if (user_socket(user, sizeof user) && parse_address(user, "", &places[count], &ignored) == LLMD_OK)
        count++;
    if (parse_address("unix:" SYSTEM_SOCKET, "", &places[count], &ignored) == LLMD_OK) count++;
    if (parse_address(DEFAULT_HOST, "", &places[count], &ignored) == LLMD_OK) count++;
    return count;
}
