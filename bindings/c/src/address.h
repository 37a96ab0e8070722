// Addresses of a daemon, in the forms that llmd's commands accept.
#ifndef LLMD_ADDRESS_H
#define LLMD_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "fault.h"

enum { PATH_SIZE = 108, HOST_SIZE = 256, PORT_SIZE = 6, ADDRESS_SIZE = HOST_SIZE + PORT_SIZE + 16 };

struct address {
    bool is_unix;
    char path[PATH_SIZE];      // of a Unix socket
    char host[HOST_SIZE];      // of TCP, without the brackets of IPv6
    char port[PORT_SIZE];      // of TCP
    char shown[ADDRESS_SIZE];  // as messages show it
};

// Parses HOST, PORT, HOST:PORT, http://HOST:PORT, unix:PATH and unix:///PATH. `origin` says in messages where
// the text is from.
llmd_status parse_address(const char* text, const char* origin, struct address* address, struct fault* fault);

enum { MOST_PLACES = 3 };

// Where a daemon may be that nobody has named, the likeliest first; returns how many places there are.
size_t usual_places(struct address places[MOST_PLACES]);

#endif
