#include "CFaultVFS.h"
#include "PowerCut.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { faults_max = 64 };
/// The operation of `fault_keep_synced`, beside those that fail.
enum { keeps_synced = 100 };

static struct {
    int is_on, operation, code, error, passes, is_short, failures;
    char ending[512];
} faults[faults_max];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct File {
    sqlite3_file base;
    char *path;
    /// The system's error number of the last failed operation; 0 if the fault had none.
    int last_error;
} File;

static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)((File *)file + 1); }

/// The code to fail with; SQLITE_OK if the operation should continue.
static int failure(sqlite3_file *file, int operation, int *is_short) {
    const char *path = ((File *)file)->path;
    int code = SQLITE_OK;
    if (path == NULL) return code;
    size_t length = strlen(path);
    pthread_mutex_lock(&lock);
    for (int index = 0; index < faults_max; index++) {
        if (!faults[index].is_on || faults[index].operation != operation) continue;
        size_t ending = strlen(faults[index].ending);
        if (ending > length || strcmp(path + length - ending, faults[index].ending) != 0) continue;
        if (faults[index].passes-- > 0) continue;
        faults[index].failures++;
        *is_short = faults[index].is_short;
        code = faults[index].code;
        ((File *)file)->last_error = faults[index].error;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int begin(const char *path_ending, int operation, int code, int error, int passes, int is_short) {
    int found = -1;
    pthread_mutex_lock(&lock);
    for (int index = 0; index < faults_max && found < 0; index++) {
        if (faults[index].is_on) continue;
        faults[index].operation = operation;
        faults[index].code = code;
        faults[index].error = error;
        faults[index].passes = passes;
        faults[index].is_short = is_short;
        faults[index].failures = 0;
        strncpy(faults[index].ending, path_ending, sizeof faults[index].ending - 1);
        faults[index].is_on = 1;
        found = index;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int fault_begin(const char *path_ending, int operation, int code, int passes, int is_short) {
    return begin(path_ending, operation, code, 0, passes, is_short);
}

int fault_begin_write_error(const char *path_ending, int error, int passes, int is_short) {
    return begin(path_ending, fault_write, error == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE, error, passes, is_short);
}

int fault_keep_synced(const char *path_ending) { return fault_begin(path_ending, keeps_synced, SQLITE_ERROR, 0, 0); }

int fault_end(int fault) {
    if (fault < 0 || fault >= faults_max) return 0;
    pthread_mutex_lock(&lock);
    faults[fault].is_on = 0;
    int failures = faults[fault].failures;
    pthread_mutex_unlock(&lock);
    return failures;
}

static int file_close(sqlite3_file *file) {
    int result = below(file)->pMethods->xClose(below(file));
    free(((File *)file)->path);
    ((File *)file)->path = NULL;
    return result;
}
static int file_read(sqlite3_file *file, void *buffer, int count, sqlite3_int64 offset) {
    int is_short = 0, code = failure(file, fault_read, &is_short);
    return code != SQLITE_OK ? code : below(file)->pMethods->xRead(below(file), buffer, count, offset);
}
static int file_write(sqlite3_file *file, const void *buffer, int count, sqlite3_int64 offset) {
    int is_short = 0, code = failure(file, fault_write, &is_short);
    if (code == SQLITE_OK) {
        power_will_write(((File *)file)->path, buffer, count, offset);
        return below(file)->pMethods->xWrite(below(file), buffer, count, offset);
    }
    if (is_short) below(file)->pMethods->xWrite(below(file), buffer, count / 2, offset);
    return code;
}
/// Copies a file by its own descriptor: opening and closing another one would release the process's locks on it.
static void keep_synced(sqlite3_file *file) {
    static pthread_mutex_t copying = PTHREAD_MUTEX_INITIALIZER;
    char path[1024], whole[1024], buffer[4096];
    sqlite3_int64 size = 0;
    snprintf(path, sizeof path, "%s.syncing", ((File *)file)->path);
    snprintf(whole, sizeof whole, "%s.synced", ((File *)file)->path);
    pthread_mutex_lock(&copying);
    FILE *copy = fopen(path, "wb");
    below(file)->pMethods->xFileSize(below(file), &size);
    for (sqlite3_int64 offset = 0; copy != NULL && offset < size; offset += sizeof buffer) {
        int count = size - offset < (sqlite3_int64)sizeof buffer ? (int)(size - offset) : (int)sizeof buffer;
        below(file)->pMethods->xRead(below(file), buffer, count, offset);
        fwrite(buffer, 1, (size_t)count, copy);
    }
    if (copy != NULL && fclose(copy) == 0) rename(path, whole);
    pthread_mutex_unlock(&copying);
}
static int file_sync(sqlite3_file *file, int flags) {
    int is_short = 0, code = failure(file, fault_sync, &is_short);
    long last = power_will_sync(((File *)file)->path);
    if (code == SQLITE_OK) code = below(file)->pMethods->xSync(below(file), flags);
    if (code == SQLITE_OK) power_did_sync(((File *)file)->path, last);
    if (code == SQLITE_OK && failure(file, keeps_synced, &is_short) != SQLITE_OK) keep_synced(file);
    return code;
}
static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    power_will_truncate(((File *)file)->path, size);
    return below(file)->pMethods->xTruncate(below(file), size);
}
static int file_size(sqlite3_file *file, sqlite3_int64 *size) { return below(file)->pMethods->xFileSize(below(file), size); }
static int file_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }
static int file_unlock(sqlite3_file *file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }
static int file_check(sqlite3_file *file, int *result) { return below(file)->pMethods->xCheckReservedLock(below(file), result); }
static int file_control(sqlite3_file *file, int operation, void *argument) {
    if (operation == SQLITE_FCNTL_LAST_ERRNO && ((File *)file)->last_error != 0) {
        *(int *)argument = ((File *)file)->last_error;
        return SQLITE_OK;
    }
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}
static int file_sector(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }
static int file_device(sqlite3_file *file) { return below(file)->pMethods->xDeviceCharacteristics(below(file)); }
/// Whether the index of a database's log is too short for a region.
static int is_index_short(sqlite3_file *file, int region, int size) {
    char path[1024];
    struct stat index;
    if (((File *)file)->path == NULL) return 0;
    snprintf(path, sizeof path, "%s-shm", ((File *)file)->path);
    return stat(path, &index) != 0 || index.st_size < (off_t)size * (region + 1);
}
static int file_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **memory) {
    int is_short = 0;
    int code = extend && is_index_short(file, region, size) ? failure(file, fault_index, &is_short) : SQLITE_OK;
    if (code != SQLITE_OK) return code;
    return below(file)->pMethods->xShmMap(below(file), region, size, extend, memory);
}
static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}
static void file_shm_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }
static int file_shm_unmap(sqlite3_file *file, int deletes) { return below(file)->pMethods->xShmUnmap(below(file), deletes); }
static int file_fetch(sqlite3_file *file, sqlite3_int64 offset, int count, void **memory) {
    return below(file)->pMethods->xFetch(below(file), offset, count, memory);
}
static int file_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *memory) {
    return below(file)->pMethods->xUnfetch(below(file), offset, memory);
}

static const sqlite3_io_methods methods = {
    3, file_close, file_read, file_write, file_truncate, file_sync, file_size, file_lock, file_unlock, file_check, file_control,
    file_sector, file_device, file_shm_map, file_shm_lock, file_shm_barrier, file_shm_unmap, file_fetch, file_unfetch,
};

static sqlite3_vfs *real_vfs;
static sqlite3_vfs fault_vfs;

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out) {
    (void)vfs;
    memset(file, 0, sizeof(File));
    int result = real_vfs->xOpen(real_vfs, name, below(file), flags, flags_out);
    if (result != SQLITE_OK) return result;
    ((File *)file)->path = name == NULL ? NULL : strdup(name);
    file->pMethods = &methods;
    return SQLITE_OK;
}

int fault_vfs_register(void) {
    pthread_mutex_lock(&lock);
    if (real_vfs == NULL) {
        // The other methods of the system's VFS read only fields that this copy has too.
        real_vfs = sqlite3_vfs_find("unix");
        if (real_vfs != NULL) {
            fault_vfs = *real_vfs;
            fault_vfs.pNext = NULL;
            fault_vfs.zName = "faults";
            fault_vfs.szOsFile = (int)sizeof(File) + real_vfs->szOsFile;
            fault_vfs.xOpen = vfs_open;
            sqlite3_vfs_register(&fault_vfs, 0);
        }
    }
    pthread_mutex_unlock(&lock);
    return real_vfs == NULL ? SQLITE_ERROR : SQLITE_OK;
}

int fault_vfs_register_as_default(void) {
    int result = fault_vfs_register();
    return result == SQLITE_OK ? sqlite3_vfs_register(&fault_vfs, 1) : result;
}
