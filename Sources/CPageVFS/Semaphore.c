#ifdef __linux__
#define _GNU_SOURCE
#endif
#include "CPageVFS.h"

#include <stdlib.h>
#ifdef __APPLE__
#include <dispatch/dispatch.h>
#else
#include <errno.h>
#include <semaphore.h>
#include <time.h>
#endif

// A condition variable with a monotonic clock would do too if wake-ups couldn't be lost: those of glibc 2.27 to 2.40 can be
// (<https://sourceware.org/bugzilla/show_bug.cgi?id=25847>).

struct roost_semaphore {
#ifdef __APPLE__
    dispatch_semaphore_t semaphore;
#else
    sem_t semaphore;
#endif
};

roost_semaphore *roost_semaphore_make(void) {
    roost_semaphore *made = calloc(1, sizeof(roost_semaphore));
    if (made == NULL) abort();
#ifdef __APPLE__
    made->semaphore = dispatch_semaphore_create(0);
    if (made->semaphore == NULL) abort();
#else
    if (sem_init(&made->semaphore, 0, 0) != 0) abort();
#endif
    return made;
}

void roost_semaphore_free(roost_semaphore *semaphore) {
#ifdef __APPLE__
    dispatch_release(semaphore->semaphore);
#else
    sem_destroy(&semaphore->semaphore);
#endif
    free(semaphore);
}

void roost_semaphore_signal(roost_semaphore *semaphore) {
#ifdef __APPLE__
    dispatch_semaphore_signal(semaphore->semaphore);
#else
    // It fails at two thousand million unconsumed signals; another one would add no information.
    sem_post(&semaphore->semaphore);
#endif
}

void roost_semaphore_wait(roost_semaphore *semaphore) {
#ifdef __APPLE__
    dispatch_semaphore_wait(semaphore->semaphore, DISPATCH_TIME_FOREVER);
#else
    while (sem_wait(&semaphore->semaphore) != 0) {
        if (errno != EINTR) abort();
    }
#endif
}

int roost_semaphore_wait_for(roost_semaphore *semaphore, int64_t nanoseconds) {
    if (nanoseconds < 0) nanoseconds = 0;
#ifdef __APPLE__
    // There it is a time since the machine was started.
    return dispatch_semaphore_wait(semaphore->semaphore, dispatch_time(DISPATCH_TIME_NOW, nanoseconds)) == 0;
#else
    static const int64_t second = 1000000000;
    struct timespec end;
    if (clock_gettime(CLOCK_MONOTONIC, &end) != 0) abort();
    int64_t rest = end.tv_nsec + nanoseconds % second;
    end.tv_sec += nanoseconds / second + rest / second;
    end.tv_nsec = rest % second;
    while (sem_clockwait(&semaphore->semaphore, CLOCK_MONOTONIC, &end) != 0) {
        if (errno == ETIMEDOUT) return 0;
        if (errno != EINTR) abort();
    }
    return 1;
#endif
}
