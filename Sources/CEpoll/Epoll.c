#define _GNU_SOURCE
#include "CEpoll.h"

#ifdef __linux__
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { changes_at_once = 1024 };

int roost_epoll_open(void) { return epoll_create1(EPOLL_CLOEXEC); }

int roost_epoll_add(int descriptor, int socket, uint64_t number) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.u64 = number};
    return epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event);
}

int roost_epoll_wait(int descriptor, uint64_t *numbers, int count, uint64_t nanoseconds) {
    struct epoll_event events[changes_at_once];
    int most = count < changes_at_once ? count : changes_at_once;
    struct timespec time = {(time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000)};
    // Not through the C library's function: libraries from before 2021 don't have it, and the server's program contains this code too.
    int result = (int)syscall(SYS_epoll_pwait2, descriptor, events, most, &time, NULL, 0);
    // Older containers' system call filters report it as not permitted.
    if (result < 0 && (errno == ENOSYS || errno == EPERM)) result = epoll_wait(descriptor, events, most, (int)(nanoseconds / 1000000 + 1));
    for (int index = 0; index < result; index++) numbers[index] = events[index].data.u64;
    return result;
}
#endif
