#ifdef __linux__
#define _GNU_SOURCE
#endif
#include "CPageVFS.h"

#include <errno.h>
#include <unistd.h>
#ifdef __linux__
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#endif
#ifdef __GLIBC__
#include <malloc.h>
#endif

void roost_name_thread(const char *name) {
#ifdef __linux__
    // A longer name would be refused.
    char kept[16] = {0};
    strncpy(kept, name, sizeof kept - 1);
    pthread_setname_np(pthread_self(), kept);
#endif
}

void roost_lower_priority(void) {
#ifdef __linux__
    // On Linux each thread has its own priority. A process that yields to others has a low one already.
    id_t thread = (id_t)syscall(SYS_gettid);
    errno = 0;
    int priority = getpriority(PRIO_PROCESS, thread);
    if (errno == 0 && priority < 10) setpriority(PRIO_PROCESS, thread, 10);
#endif
}

int roost_write_behind(int descriptor) {
#ifdef __linux__
    // Unlike fsync, this doesn't make another file's commit wait for this one's bytes.
    if (sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE) == 0) return 0;
    // If the system doesn't permit the call, nothing was done, and no error was taken from the next fsync.
    return errno == ENOSYS || errno == EPERM ? 0 : errno;
#else
    return fsync(descriptor) == 0 ? 0 : errno;
#endif
}

void roost_drop_cache(int descriptor) {
#ifdef __linux__
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
#else
    (void)descriptor;
#endif
}

void roost_leave_sqlite_uncounted(void) { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

void roost_return_memory(void) {
#ifdef __GLIBC__
    // glibc raises both by itself once a large block has been freed, up to 32 and 64 MB, and then keeps memory for the next ones.
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 512 << 10);
#endif
}

void roost_trim_memory(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
