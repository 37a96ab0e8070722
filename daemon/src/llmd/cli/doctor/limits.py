"""The limits of this process, which a daemon started from the same shell would have too."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

from llmd.api.byte_size import format_bytes
from llmd.api.machine import address_space_limit, num_processors
from llmd.cli.doctor.check import Check, Surroundings

OPEN_TO_OTHERS = 0o022
OTHER_DESCRIPTORS = 256
"""File descriptors that a daemon uses besides those of its connections."""


def checks(around: Surroundings) -> Iterator[Check]:
    settings = around.settings
    yield umask_check(current_umask())
    yield descriptors_check(
        resource.getrlimit(resource.RLIMIT_NOFILE)[1], settings.config.server.limits.max_connections
    )
    yield address_space_check(address_space_limit())
    removal = settings.origins["engine.threads"].removal("engine.threads")
    yield threads_check(settings.config.engine.threads, num_processors(around.root), removal)


def current_umask() -> int:
    """Return the umask of this process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def umask_check(mask: int) -> Check:
    """Check that files that llmd makes, such as logs and models, cannot be changed by others."""
    seen = f"{mask:04o}"
    if mask & OPEN_TO_OTHERS == OPEN_TO_OTHERS:
        return Check("umask", "ok", seen)
    seen += ": other users may change the files and folders that llmd makes"
    return Check("umask", "warn", seen, "set it before llmd starts: `umask 022`")


def descriptors_check(most: int, connections: int) -> Check:
    """Check the hard limit of file descriptors: a daemon raises the soft one to it."""
    wanted = connections + OTHER_DESCRIPTORS
    if most == resource.RLIM_INFINITY or most >= wanted:
        return Check("descriptors", "ok", "unlimited" if most == resource.RLIM_INFINITY else str(most))
    seen = f"at most {most} open files: fewer than {connections} connections (max_connections) are accepted"
    fitting = max(1, most - OTHER_DESCRIPTORS)
    fix = f"raise the limit (LimitNOFILE= of a service, `ulimit -n {wanted}` as root), or `llmd config set max_connections {fitting}`"
    return Check("descriptors", "warn", seen, fix)


def address_space_check(limit: int | None) -> Check:
    """Check that the address space is not limited: models are mapped into it."""
    if limit is None:
        return Check("address-space", "ok", "unlimited")
    seen = f"limited to {format_bytes(limit)}: models that are larger cannot be loaded"
    return Check("address-space", "warn", seen, "remove the limit: `ulimit -v unlimited`")


def threads_check(threads: int | None, processors: int, removing: str) -> Check:
    """Check that there are not more threads than processors that this process may use."""
    if threads is None or threads <= processors:
        return Check("threads", "ok", f"{processors} processors")
    seen = (
        f"threads is {threads}, but this process may use {processors} processors: threads wait for each other"
    )
    return Check("threads", "warn", seen, f"let llmd choose: `{removing}`")
