#include "LogFrames.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kind_other, kind_database, kind_log };

/// File controls: the query of `roost_has_checksums`, and the commands of `roost_sync_database`, `roost_sync_in_steps` and `roost_note_reads`.
static const int control_has_checksums = 0x526f6f73;
static const int control_sync = 0x526f6f74;
static const int control_sync_in_steps = 0x526f6f75;
static const int control_note_reads = 0x526f6f76;

static const sqlite3_int64 everything_is_committed = INT64_MAX;

/// The number of frames joined into one write, unless their transaction ends earlier. SQLite's own VFS takes less than 128 KiB at once.
enum { joined_frames = 31 };

/// The receiver of reports about reads.
typedef struct ReadNote {
    roost_read_note call;
    void *context;
} ReadNote;

/// An open file. The file of the VFS below follows it in memory.
typedef struct File {
    sqlite3_file base;
    int kind;
    /// Database: whether its pages carry checksums, that is, whether its first page reserves 8 bytes for them.
    int has_checksums;
    /// Database: the number of pages after which written ones are synced, 0 to sync only when SQLite asks; and the number written since.
    int step_pages;
    int unsynced_pages;
    /// Database: the receiver of reports about this connection's reads, if any; and the pages since the last report, with the nanoseconds they took.
    ReadNote note;
    int noted_pages;
    int64_t noted_nanoseconds;
    /// Log: whether its checksums are over big-endian words; -1 while unknown.
    int is_big_endian;
    /// Log: the start of the frames that this connection has written and not committed yet. Their checksums can still change.
    sqlite3_int64 uncommitted_from;
    /// Log: bytes not written to the file below yet, and their place in it. Room for `joined_frames`, allocated at the first frame.
    unsigned char *joined;
    int joined_count;
    sqlite3_int64 joined_offset;
} File;

static _Atomic uint64_t damage_count;
static _Thread_local int last_damage_kind;
static _Thread_local uint32_t last_damage_page;

static sqlite3_file *below(sqlite3_file *file) { return (sqlite3_file *)((File *)file + 1); }

/// Writes to the file below. The system's VFS distinguishes a full disk from a broken one, but reports an exhausted quota as a
/// broken one. That is a full disk too: everything written before is intact.
static int write_below(sqlite3_file *file, const void *buffer, int count, sqlite3_int64 offset) {
    sqlite3_file *real = below(file);
    int result = real->pMethods->xWrite(real, buffer, count, offset);
    if (result != SQLITE_IOERR_WRITE) return result;
    int error = 0;
    if (real->pMethods->xFileControl(real, SQLITE_FCNTL_LAST_ERRNO, &error) != SQLITE_OK) return result;
    return error == EDQUOT ? SQLITE_FULL : result;
}

// MARK: Checksums

static uint64_t word(const unsigned char *bytes) {
    uint64_t value;
    memcpy(&value, bytes, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

static uint64_t rotated(uint64_t value, int count) { return value << count | value >> (64 - count); }

static uint64_t mixed(uint64_t value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93u;
    value ^= value >> 29;
    value *= 0xa0761d6478bd642fu;
    return value ^ value >> 32;
}

/// Four lanes of words, so the processor multiplies several at a time. Each step is a bijection of the lane, so later words can't undo a changed one.
uint64_t roost_checksum(const void *bytes, size_t count, uint64_t seed) {
    const unsigned char *next = bytes;
    uint64_t lanes[4] = {
        seed ^ 0x9e3779b97f4a7c15u, seed ^ 0xc2b2ae3d27d4eb4fu, seed ^ 0x165667b19e3779f9u, seed ^ 0x27d4eb2f165667c5u,
    };
    size_t rest = count;
    while (rest >= 32) {
        for (int lane = 0; lane < 4; lane++) {
            lanes[lane] = rotated((lanes[lane] ^ word(next + 8 * lane)) * 0x9fb21c651e98df25u, 29);
        }
        next += 32;
        rest -= 32;
    }
    for (int lane = 0; rest > 0; lane++) {
        unsigned char last[8] = {0};
        size_t taken = rest < 8 ? rest : 8;
        memcpy(last, next, taken);
        lanes[lane] = rotated((lanes[lane] ^ word(last)) * 0x9fb21c651e98df25u, 29);
        next += taken;
        rest -= taken;
    }
    uint64_t sum = mixed(lanes[0]);
    for (int lane = 1; lane < 4; lane++) sum = mixed(sum * 3 + lanes[lane]);
    return mixed(sum ^ count);
}

static uint64_t page_checksum(const void *page, uint32_t number) {
    return roost_checksum(page, ROOST_PAGE_SIZE - ROOST_RESERVED_BYTES, number);
}

int roost_page_is_intact(const void *page, uint32_t number) {
    return page_checksum(page, number) == word((const unsigned char *)page + ROOST_PAGE_SIZE - ROOST_RESERVED_BYTES);
}

static int damaged(int kind, uint32_t page) {
    last_damage_kind = kind;
    last_damage_page = page;
    atomic_fetch_add(&damage_count, 1);
    sqlite3_log(SQLITE_IOERR_DATA, "page %u of the %s doesn't match its checksum", page, kind == kind_log ? "log" : "database");
    return SQLITE_IOERR_DATA;
}

int roost_take_damage(uint32_t *page) {
    int kind = last_damage_kind;
    *page = last_damage_page;
    last_damage_kind = kind_other;
    return kind;
}

uint64_t roost_damage_count(void) { return atomic_load(&damage_count); }

// MARK: Pages of the database file

static int reserves_bytes(const unsigned char *page) {
    return memcmp(page, "SQLite format 3", 16) == 0 && page[20] == ROOST_RESERVED_BYTES;
}

static int read_page(sqlite3_file *file, void *buffer, sqlite3_int64 offset) {
    int result = below(file)->pMethods->xRead(below(file), buffer, ROOST_PAGE_SIZE, offset);
    uint32_t number = (uint32_t)(offset / ROOST_PAGE_SIZE) + 1;
    // SQLite takes missing bytes at the end of a file for zeros. Only an empty file lacks a page that SQLite asks for.
    if (result == SQLITE_IOERR_SHORT_READ && offset > 0) return damaged(kind_database, number);
    if (result == SQLITE_OK && !roost_page_is_intact(buffer, number)) return damaged(kind_database, number);
    return result;
}

static int read_database(sqlite3_file *file, void *buffer, int count, sqlite3_int64 offset) {
    if (count == ROOST_PAGE_SIZE && offset % ROOST_PAGE_SIZE == 0) return read_page(file, buffer, offset);
    sqlite3_int64 start = offset - offset % ROOST_PAGE_SIZE;
    // The header of the first page is read by itself before the whole page is.
    if (start == 0 || count < 0 || offset + count > start + ROOST_PAGE_SIZE) {
        return below(file)->pMethods->xRead(below(file), buffer, count, offset);
    }
    unsigned char page[ROOST_PAGE_SIZE];
    int result = read_page(file, page, start);
    if (result == SQLITE_OK) memcpy(buffer, page + (offset - start), (size_t)count);
    return result;
}

static int64_t monotonic_nanoseconds(void) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/// Reads from a database, and reports every few pages.
static int read_and_note(File *own, void *buffer, int count, sqlite3_int64 offset) {
    int64_t start = monotonic_nanoseconds();
    int result = read_database(&own->base, buffer, count, offset);
    own->noted_nanoseconds += monotonic_nanoseconds() - start;
    if (++own->noted_pages < ROOST_PAGES_AT_ONCE) return result;
    int64_t nanoseconds = own->noted_nanoseconds;
    own->noted_pages = 0;
    own->noted_nanoseconds = 0;
    own->note.call(own->note.context, nanoseconds);
    return result;
}

/// Counts a page, and syncs the file when a step is complete.
static int note_page(File *own) {
    if (own->step_pages == 0 || ++own->unsynced_pages < own->step_pages) return SQLITE_OK;
    own->unsynced_pages = 0;
    sqlite3_file *real = below(&own->base);
    return real->pMethods->xSync(real, SQLITE_SYNC_NORMAL);
}

static int write_database(sqlite3_file *file, const void *buffer, int count, sqlite3_int64 offset) {
    File *own = (File *)file;
    if (count != ROOST_PAGE_SIZE || offset % ROOST_PAGE_SIZE != 0) return write_below(file, buffer, count, offset);
    // A checkpoint writes pages by number, so the first page of a converted file is written before all others.
    if (offset == 0) own->has_checksums = reserves_bytes(buffer);
    if (!own->has_checksums) return write_below(file, buffer, count, offset);
    unsigned char page[ROOST_PAGE_SIZE];
    memcpy(page, buffer, ROOST_PAGE_SIZE - ROOST_RESERVED_BYTES);
    uint64_t sum = page_checksum(page, (uint32_t)(offset / ROOST_PAGE_SIZE) + 1);
    for (int index = 0; index < 8; index++) page[ROOST_PAGE_SIZE - ROOST_RESERVED_BYTES + index] = (unsigned char)(sum >> 8 * index);
    int result = write_below(file, page, ROOST_PAGE_SIZE, offset);
    return result != SQLITE_OK ? result : note_page(own);
}

// MARK: Frames of the log

static int read_log(sqlite3_file *file, void *buffer, int count, sqlite3_int64 offset) {
    File *own = (File *)file;
    sqlite3_file *real = below(file);
    int result = real->pMethods->xRead(real, buffer, count, offset);
    sqlite3_int64 frame = offset - frame_header_size;
    if (result != SQLITE_OK || count != ROOST_PAGE_SIZE || frame < log_header_size || (frame - log_header_size) % frame_size != 0
        || frame >= own->uncommitted_from) {
        return result;
    }
    unsigned char header[frame_header_size], before[8];
    if (own->is_big_endian < 0) {
        result = real->pMethods->xRead(real, before, 4, 0);
        if (result != SQLITE_OK) return result;
        own->is_big_endian = big_endian(before) & 1;
    }
    result = real->pMethods->xRead(real, header, frame_header_size, frame);
    if (result != SQLITE_OK) return result;
    // The first frame continues from the checksum of the log's header, the others from that of the previous frame.
    sqlite3_int64 sum_before = frame == log_header_size ? 24 : frame - frame_size + 16;
    result = real->pMethods->xRead(real, before, 8, sum_before);
    if (result != SQLITE_OK) return result;
    uint32_t sum[2] = {big_endian(before), big_endian(before + 4)};
    add_to_log_checksum(sum, header, 8, own->is_big_endian);
    add_to_log_checksum(sum, buffer, ROOST_PAGE_SIZE, own->is_big_endian);
    if (sum[0] != big_endian(header + 16) || sum[1] != big_endian(header + 20)) return damaged(kind_log, big_endian(header));
    return SQLITE_OK;
}

static void note_log_write(File *own, const unsigned char *bytes, int count, sqlite3_int64 offset) {
    if (count == log_header_size && offset == 0) {
        own->is_big_endian = big_endian(bytes) & 1;
        own->uncommitted_from = everything_is_committed;
    }
    if (count != frame_header_size || (offset - log_header_size) % frame_size != 0) return;
    if (offset < own->uncommitted_from) own->uncommitted_from = offset;
    // A transaction's last frame contains the size of the database.
    if (big_endian(bytes + 4) != 0) own->uncommitted_from = everything_is_committed;
}

// MARK: Writing the log
//
// SQLite writes the header of a frame and its page separately: two calls for each of the dozen pages of a commit. Here they are
// joined into one write: at the end of a transaction, before the file is read, measured, truncated or synced, and when the
// buffer is full. Other connections only look for frames of finished transactions.

static int write_joined(File *own) {
    if (own->joined_count == 0) return SQLITE_OK;
    int count = own->joined_count;
    // Bytes that couldn't be written belong to a transaction that SQLite rolls back.
    own->joined_count = 0;
    return write_below(&own->base, own->joined, count, own->joined_offset);
}

static int write_log(File *own, const void *buffer, int count, sqlite3_int64 offset) {
    int is_header = count == frame_header_size && offset >= log_header_size && (offset - log_header_size) % frame_size == 0;
    int follows = own->joined_count > 0 && offset == own->joined_offset + own->joined_count
        && own->joined_count + count <= joined_frames * frame_size;
    if (!follows) {
        int result = write_joined(own);
        if (result != SQLITE_OK) return result;
        if (is_header && own->joined == NULL) own->joined = malloc(joined_frames * frame_size);
        if (!is_header || own->joined == NULL) return write_below(&own->base, buffer, count, offset);
        own->joined_offset = offset;
    }
    memcpy(own->joined + own->joined_count, buffer, (size_t)count);
    own->joined_count += count;
    // The page that follows the header of a transaction's last frame.
    return !is_header && own->uncommitted_from == everything_is_committed ? write_joined(own) : SQLITE_OK;
}

// MARK: Methods of a file

static int file_close(sqlite3_file *file) {
    File *own = (File *)file;
    int written = write_joined(own);
    free(own->joined);
    own->joined = NULL;
    int closed = below(file)->pMethods->xClose(below(file));
    return written != SQLITE_OK ? written : closed;
}

static int file_read(sqlite3_file *file, void *buffer, int count, sqlite3_int64 offset) {
    File *own = (File *)file;
    if (own->kind == kind_database && own->has_checksums) {
        return own->note.call != NULL ? read_and_note(own, buffer, count, offset) : read_database(file, buffer, count, offset);
    }
    if (own->kind == kind_log) {
        int result = write_joined(own);
        return result != SQLITE_OK ? result : read_log(file, buffer, count, offset);
    }
    return below(file)->pMethods->xRead(below(file), buffer, count, offset);
}

static int file_write(sqlite3_file *file, const void *buffer, int count, sqlite3_int64 offset) {
    File *own = (File *)file;
    if (own->kind == kind_database) return write_database(file, buffer, count, offset);
    if (own->kind != kind_log) return write_below(file, buffer, count, offset);
    note_log_write(own, buffer, count, offset);
    return write_log(own, buffer, count, offset);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size) {
    int result = write_joined((File *)file);
    return result != SQLITE_OK ? result : below(file)->pMethods->xTruncate(below(file), size);
}
static int file_sync(sqlite3_file *file, int flags) {
    int result = write_joined((File *)file);
    return result != SQLITE_OK ? result : below(file)->pMethods->xSync(below(file), flags);
}
static int file_size(sqlite3_file *file, sqlite3_int64 *size) {
    int result = write_joined((File *)file);
    return result != SQLITE_OK ? result : below(file)->pMethods->xFileSize(below(file), size);
}
static int file_lock(sqlite3_file *file, int level) { return below(file)->pMethods->xLock(below(file), level); }
static int file_unlock(sqlite3_file *file, int level) { return below(file)->pMethods->xUnlock(below(file), level); }
static int file_check_lock(sqlite3_file *file, int *result) {
    return below(file)->pMethods->xCheckReservedLock(below(file), result);
}

static int file_control(sqlite3_file *file, int operation, void *argument) {
    if (operation == control_has_checksums) {
        *(int *)argument = ((File *)file)->has_checksums;
        return SQLITE_OK;
    }
    if (operation == control_sync_in_steps) {
        ((File *)file)->step_pages = *(int *)argument;
        return SQLITE_OK;
    }
    if (operation == control_note_reads) {
        File *own = (File *)file;
        own->note = *(ReadNote *)argument;
        own->noted_pages = 0;
        own->noted_nanoseconds = 0;
        return SQLITE_OK;
    }
    if (operation == control_sync) return file_sync(file, SQLITE_SYNC_NORMAL);
    return below(file)->pMethods->xFileControl(below(file), operation, argument);
}

static int file_sector_size(sqlite3_file *file) { return below(file)->pMethods->xSectorSize(below(file)); }
static int file_characteristics(sqlite3_file *file) { return below(file)->pMethods->xDeviceCharacteristics(below(file)); }

static int file_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **memory) {
    return below(file)->pMethods->xShmMap(below(file), region, size, extend, memory);
}
static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags) {
    return below(file)->pMethods->xShmLock(below(file), offset, count, flags);
}
static void file_shm_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }
static int file_shm_unmap(sqlite3_file *file, int deletes) { return below(file)->pMethods->xShmUnmap(below(file), deletes); }

/// Mapped memory would bypass the checksums.
static int file_fetch(sqlite3_file *file, sqlite3_int64 offset, int count, void **memory) {
    (void)file, (void)offset, (void)count;
    *memory = NULL;
    return SQLITE_OK;
}
static int file_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *memory) {
    (void)file, (void)offset, (void)memory;
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
    3, file_close, file_read, file_write, file_truncate, file_sync, file_size, file_lock, file_unlock, file_check_lock, file_control,
    file_sector_size, file_characteristics, file_shm_map, file_shm_lock, file_shm_barrier, file_shm_unmap, file_fetch, file_unfetch,
};

// MARK: Methods of the VFS

static sqlite3_vfs *base_of(sqlite3_vfs *vfs) { return vfs->pAppData; }

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *flags_out) {
    File *own = (File *)file;
    memset(own, 0, sizeof(File));
    own->is_big_endian = -1;
    own->uncommitted_from = everything_is_committed;
    own->kind = flags & SQLITE_OPEN_MAIN_DB ? kind_database : flags & SQLITE_OPEN_WAL ? kind_log : kind_other;
    sqlite3_file *real = below(file);
    real->pMethods = NULL;
    int result = base_of(vfs)->xOpen(base_of(vfs), name, real, flags, flags_out);
    if (result != SQLITE_OK) {
        // A file that couldn't be opened must still be closed if it has methods.
        if (real->pMethods != NULL) real->pMethods->xClose(real);
        return result;
    }
    own->base.pMethods = &methods;
    if (own->kind == kind_database) {
        unsigned char header[100] = {0};
        result = real->pMethods->xRead(real, header, sizeof header, 0);
        // An empty file becomes a database with checksums.
        own->has_checksums = result == SQLITE_IOERR_SHORT_READ || reserves_bytes(header);
        if (result != SQLITE_OK && result != SQLITE_IOERR_SHORT_READ) {
            real->pMethods->xClose(real);
            own->base.pMethods = NULL;
            return result;
        }
    }
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int syncs) { return base_of(vfs)->xDelete(base_of(vfs), name, syncs); }
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    return base_of(vfs)->xAccess(base_of(vfs), name, flags, result);
}
static int vfs_full_pathname(sqlite3_vfs *vfs, const char *name, int size, char *result) {
    return base_of(vfs)->xFullPathname(base_of(vfs), name, size, result);
}
static int vfs_randomness(sqlite3_vfs *vfs, int count, char *bytes) {
    return base_of(vfs)->xRandomness(base_of(vfs), count, bytes);
}
static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) { return base_of(vfs)->xSleep(base_of(vfs), microseconds); }
static int vfs_current_time(sqlite3_vfs *vfs, double *time) { return base_of(vfs)->xCurrentTime(base_of(vfs), time); }
static int vfs_last_error(sqlite3_vfs *vfs, int size, char *text) { return base_of(vfs)->xGetLastError(base_of(vfs), size, text); }
static int vfs_current_time_int64(sqlite3_vfs *vfs, sqlite3_int64 *time) {
    return base_of(vfs)->xCurrentTimeInt64(base_of(vfs), time);
}

int roost_vfs_register(const char *name, const char *base_name, int is_default) {
    if (sqlite3_vfs_find(name) != NULL) return SQLITE_OK;
    sqlite3_vfs *base = sqlite3_vfs_find(base_name);
    if (base == NULL || base->iVersion < 2) return SQLITE_ERROR;
    // Registered for the life of the process.
    sqlite3_vfs *vfs = calloc(1, sizeof(sqlite3_vfs));
    char *kept_name = strdup(name);
    if (vfs == NULL || kept_name == NULL) {
        free(vfs);
        free(kept_name);
        return SQLITE_NOMEM;
    }
    vfs->iVersion = 2;
    vfs->szOsFile = (int)sizeof(File) + base->szOsFile;
    vfs->mxPathname = base->mxPathname;
    vfs->zName = kept_name;
    vfs->pAppData = base;
    vfs->xOpen = vfs_open;
    vfs->xDelete = vfs_delete;
    vfs->xAccess = vfs_access;
    vfs->xFullPathname = vfs_full_pathname;
    vfs->xRandomness = vfs_randomness;
    vfs->xSleep = vfs_sleep;
    vfs->xCurrentTime = vfs_current_time;
    vfs->xGetLastError = vfs_last_error;
    vfs->xCurrentTimeInt64 = vfs_current_time_int64;
    return sqlite3_vfs_register(vfs, is_default);
}

// MARK: Connections

int roost_has_checksums(sqlite3 *connection) {
    int has_checksums = 0;
    if (sqlite3_file_control(connection, "main", control_has_checksums, &has_checksums) != SQLITE_OK) return 0;
    return has_checksums;
}

int roost_uses_vfs(sqlite3 *connection) {
    int has_checksums = 0;
    return sqlite3_file_control(connection, "main", control_has_checksums, &has_checksums) == SQLITE_OK;
}

int roost_sync_database(sqlite3 *connection) { return sqlite3_file_control(connection, "main", control_sync, NULL); }

int roost_sync_in_steps(sqlite3 *connection, int pages) {
    return sqlite3_file_control(connection, "main", control_sync_in_steps, &pages);
}

int roost_note_reads(sqlite3 *connection, roost_read_note note, void *context) {
    ReadNote told = {note, context};
    return sqlite3_file_control(connection, "main", control_note_reads, &told);
}

int roost_sync_log(sqlite3 *connection) {
    sqlite3_file *log = NULL;
    int result = sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (result != SQLITE_OK) return result;
    return log == NULL || log->pMethods == NULL ? SQLITE_ERROR : log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
}

int roost_reserve_log_index(sqlite3 *connection, int frames) {
    // The index consists of pieces for 4,096 frames each. The first has 34 fewer, since it contains the index's head. SQLite
    // allocates each piece when a frame first needs it, and the file system then allocates the earlier ones too.
    enum { piece_size = 32768, piece_frames = 4096, head_frames = 34 };
    sqlite3_file *file = NULL;
    int result = sqlite3_file_control(connection, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (result != SQLITE_OK) return result;
    if (file == NULL || file->pMethods == NULL) return SQLITE_ERROR;
    void volatile *memory = NULL;
    return file->pMethods->xShmMap(file, (frames + head_frames - 1) / piece_frames, piece_size, 1, &memory);
}

int roost_reserve_bytes(sqlite3 *connection) {
    int count = ROOST_RESERVED_BYTES;
    return sqlite3_file_control(connection, "main", SQLITE_FCNTL_RESERVE_BYTES, &count);
}

static int note_frames(void *frames, sqlite3 *connection, const char *database, int count) {
    (void)connection, (void)database;
    *(int *)frames = count;
    return SQLITE_OK;
}

void roost_count_log_frames(sqlite3 *connection, int *frames) { sqlite3_wal_hook(connection, note_frames, frames); }

void roost_keep_log_on_close(sqlite3 *connection, int keeps) {
    sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keeps, NULL);
}

// A pragma takes no bound values. These are numbers.

int roost_set_generation(sqlite3 *connection, uint32_t generation) {
    char statement[64];
    sqlite3_snprintf(sizeof statement, statement, "PRAGMA user_version = %d", (int32_t)generation);
    return sqlite3_exec(connection, statement, NULL, NULL, NULL);
}

int roost_set_page_cache(sqlite3 *connection, int kibibytes) {
    char statement[64];
    // A negative number means KiB instead of pages.
    sqlite3_snprintf(sizeof statement, statement, "PRAGMA cache_size = -%d", kibibytes);
    return sqlite3_exec(connection, statement, NULL, NULL, NULL);
}

int roost_limit_log(sqlite3 *connection, int64_t size) {
    char statement[64];
    sqlite3_snprintf(sizeof statement, statement, "PRAGMA journal_size_limit = %lld", (long long)size);
    return sqlite3_exec(connection, statement, NULL, NULL, NULL);
}

int roost_keep_plans(sqlite3 *connection) {
    return sqlite3_db_config(connection, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
}

int roost_recompilations(sqlite3 *connection) {
    int count = 0;
    for (sqlite3_stmt *statement = sqlite3_next_stmt(connection, NULL); statement; statement = sqlite3_next_stmt(connection, statement)) {
        count += sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_REPREPARE, 0);
    }
    return count;
}

int roost_set_application_id(sqlite3 *connection, int32_t id) {
    char statement[64];
    sqlite3_snprintf(sizeof statement, statement, "PRAGMA application_id = %d", id);
    return sqlite3_exec(connection, statement, NULL, NULL, NULL);
}
