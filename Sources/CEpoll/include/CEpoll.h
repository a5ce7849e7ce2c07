#ifndef ROOST_EPOLL_H
#define ROOST_EPOLL_H

#include <stdint.h>

// Linux tells with these which of many sockets have something to read, or room to write again. Each change is told once.

/// Returns a descriptor to wait with, or -1 and `errno`.
int roost_epoll_open(void);

/// Has the changes of a socket told by its number. Returns 0, or -1 and `errno`.
int roost_epoll_add(int descriptor, int socket, uint64_t number);

/// Waits until there is a change, but no longer than a time. Before Linux 5.11 that is rounded up to milliseconds.
///
/// Returns how many numbers were written, `count` at most, or -1 and `errno`.
int roost_epoll_wait(int descriptor, uint64_t *numbers, int count, uint64_t nanoseconds);

#endif
