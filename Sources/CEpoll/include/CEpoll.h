#ifndef ROOST_EPOLL_H
#define ROOST_EPOLL_H

#include <stdint.h>

// Linux reports with these which of many sockets are readable, or writable again. Each change is reported once.

/// Returns a descriptor to wait on, or -1 and `errno`.
int roost_epoll_open(void);

/// Registers a socket, whose changes are reported by its number. Returns 0, or -1 and `errno`.
int roost_epoll_add(int descriptor, int socket, uint64_t number);

/// Waits for a change, up to a time limit. Before Linux 5.11 the limit is rounded up to milliseconds.
///
/// Returns how many numbers were written, `count` at most, or -1 and `errno`.
int roost_epoll_wait(int descriptor, uint64_t *numbers, int count, uint64_t nanoseconds);

#endif
