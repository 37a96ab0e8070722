// A daemon that this process starts and ends.
#ifndef LLMD_PRIVATE_DAEMON_H
#define LLMD_PRIVATE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "address.h"
#include "fault.h"

enum { FOLDER_SIZE = 96 };

struct private_daemon {
    pid_t process;  // 0: none
    pid_t owner;    // the process that started it: a fork of that process must not end it
    int input;      // a pipe; the daemon ends when it is closed, also because this process has ended
    int output;     // a pipe with what it prints
    char folder[FOLDER_SIZE];  // holds its socket and its log
};

struct daemon_command {
    const char* program;
    char* const* flags;  // more arguments of `llmd serve`, ended by NULL
    size_t flag_count;
    const char* model;
    int start_ms;
};

// Starts a daemon and waits until its model is loaded. `address` is then where it listens.
llmd_status start_private_daemon(struct private_daemon* daemon, const struct daemon_command* command,
                                 struct address* address, struct fault* fault);

// Ends it without waiting for its answers, and removes its folder.
void end_private_daemon(struct private_daemon* daemon);

#endif
