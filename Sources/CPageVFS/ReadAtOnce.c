#ifdef __linux__
#define _GNU_SOURCE
#endif
#include "CPageVFS.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/uio.h>
#endif

// SQLite's VFS for the system reads files by replaceable calls. Those here behave like the system's, unless their thread has
// declared that it doesn't wait: then pages that the system doesn't have in memory aren't read.

static _Thread_local int is_at_once;
static _Thread_local int would_wait;
/// Whether the calls are replaced.
static int is_replaced;

void roost_begin_at_once(void) {
    is_at_once = 1;
    would_wait = 0;
}

int roost_end_at_once(void) {
    is_at_once = 0;
    return !would_wait;
}

#if defined(__linux__) && defined(RWF_NOWAIT)
typedef ssize_t (*read_call)(int descriptor, void *buffer, size_t count, off_t offset);
static read_call system_pread, system_pread64;

static ssize_t read_from(read_call system_call, int descriptor, void *buffer, size_t count, off_t offset) {
    if (!is_at_once) return system_call(descriptor, buffer, count, offset);
    struct iovec part = {buffer, count};
    ssize_t result = preadv2(descriptor, &part, 1, offset, RWF_NOWAIT);
    if (result > 0 || (result < 0 && errno == EINTR)) return result;
    would_wait = 1;
    // Linux 5.9 and 5.10 may return 0 before the end of a file (preadv2(2)), and SQLite takes EIO for file system damage.
    errno = EAGAIN;
    return -1;
}

static ssize_t our_pread(int descriptor, void *buffer, size_t count, off_t offset) {
    return read_from(system_pread, descriptor, buffer, count, offset);
}
static ssize_t our_pread64(int descriptor, void *buffer, size_t count, off_t offset) {
    return read_from(system_pread64, descriptor, buffer, count, offset);
}

/// Replaces a call if SQLite makes it.
static int replace(sqlite3_vfs *vfs, const char *name, read_call ours, read_call *system_call) {
    sqlite3_syscall_ptr current = vfs->xGetSystemCall(vfs, name);
    if (current == NULL) return 0;
    *system_call = (read_call)current;
    return vfs->xSetSystemCall(vfs, name, (sqlite3_syscall_ptr)ours) == SQLITE_OK;
}

static void replace_calls(void) {
    sqlite3_vfs *vfs = sqlite3_vfs_find("unix");
    if (vfs == NULL || vfs->iVersion < 3) return;
    int has_pread = replace(vfs, "pread", our_pread, &system_pread);
    int has_pread64 = replace(vfs, "pread64", our_pread64, &system_pread64);
    is_replaced = has_pread || has_pread64;
}

static int can_tell(int descriptor) {
    char byte;
    struct iovec part = {&byte, 1};
    return preadv2(descriptor, &part, 1, 0, RWF_NOWAIT) >= 0 || errno == EAGAIN;
}
#else
static void replace_calls(void) {}
static int can_tell(int descriptor) { (void)descriptor; return 0; }
#endif

int roost_allow_at_once(const char *path) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, replace_calls);
    if (!is_replaced) return 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return 0;
    int result = can_tell(descriptor);
    close(descriptor);
    return result;
}
