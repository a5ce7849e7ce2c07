#ifndef ROOST_PAGE_VFS_H
#define ROOST_PAGE_VFS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/// Pages of a Roost database have this size, and end in a checksum of 8 bytes.
#define ROOST_PAGE_SIZE 4096
#define ROOST_RESERVED_BYTES 8

/// The number of pages read between two pauses: 32 KiB.
#define ROOST_PAGES_AT_ONCE 8

/// Registers a VFS on top of another one. It adds a checksum to each page written to a database file, and verifies it when the
/// page is read. A page read from the write-ahead log is checked against the checksum of its frame. A mismatch is
/// SQLITE_IOERR_DATA, and the page never reaches SQLite. Does nothing if the name is registered already.
///
/// - base: the underlying VFS; NULL for the system's own.
/// - is_default: whether connections that name no VFS use it.
int roost_vfs_register(const char *name, const char *base, int is_default);

/// 64 bits of the bytes and the seed. Every change within one aligned group of 8 bytes changes it.
uint64_t roost_checksum(const void *bytes, size_t count, uint64_t seed);

/// Whether a page of a database file carries the right checksum. The first page has the number 1.
int roost_page_is_intact(const void *page, uint32_t number);

/// Whether the pages of a connection's main file carry checksums, which are verified.
int roost_has_checksums(sqlite3 *connection);

/// Whether the main file of a connection uses the VFS above.
int roost_uses_vfs(sqlite3 *connection);

/// Syncs a connection's main file to disk. Returns an SQLite code.
int roost_sync_database(sqlite3 *connection);

/// Syncs a connection's main file after every `pages` pages with checksums, and not only when SQLite asks for it. Others
/// waiting for the same disk then wait for a few pages, and not for all of them. Returns an SQLite code.
int roost_sync_in_steps(sqlite3 *connection, int pages);

/// Receives a report about a connection's reads: the nanoseconds that `ROOST_PAGES_AT_ONCE` pages took.
typedef void (*roost_read_note)(void *context, int64_t nanoseconds);

/// Calls a function each time that a connection has read `ROOST_PAGES_AT_ONCE` pages with checksums of its main file, on the
/// reading thread; NULL to stop. The connection continues when the function returns. Returns an SQLite code.
int roost_note_reads(sqlite3 *connection, roost_read_note note, void *context);

/// Syncs a connection's log to disk as it is, including its length. Returns an SQLite code.
int roost_sync_log(sqlite3 *connection);

/// Reserves the bytes at the end of each page that checksums need. Takes effect in a new file, and in others after VACUUM.
int roost_reserve_bytes(sqlite3 *connection);

/// Keeps the current number of frames in the write-ahead log in `*frames`, which must outlive the connection. Turns automatic checkpoints off.
void roost_count_log_frames(sqlite3 *connection, int *frames);

/// Truncates the file of a connection's log to `size` bytes at the first commit of each log that it begins, if it is larger.
/// The bytes that this commit has written stay, and are on disk by then.
int roost_limit_log(sqlite3 *connection, int64_t size);

/// Allocates disk space for the index of a connection's log with this many frames. Returns an SQLite code.
int roost_reserve_log_index(sqlite3 *connection, int frames);

/// Sets the size of a connection's page cache, in KiB.
int roost_set_page_cache(sqlite3 *connection, int kibibytes);

/// Makes the plan of a statement depend on its text alone. Otherwise a statement that compares a value with a column of a
/// partial index, or with LIKE, is recompiled each time that the value is bound.
int roost_keep_plans(sqlite3 *connection);

/// How often the statements that a connection keeps were recompiled.
int roost_recompilations(sqlite3 *connection);

/// Leaves the log unchanged when the connection closes.
void roost_keep_log_on_close(sqlite3 *connection, int keeps);

/// Sets a number in the header of the database file, in its own transaction or in the open one.
int roost_set_generation(sqlite3 *connection, uint32_t generation);
int roost_set_application_id(sqlite3 *connection, int32_t id);

/// Returns and clears the last damage that this thread has found: 0 for none, 1 for a page of a database file, 2 for one of a log.
int roost_take_damage(uint32_t *page);

/// The number of damaged pages found since the process started.
uint64_t roost_damage_count(void);

/// The contents of a write-ahead log, read without SQLite, which silently stops at the first frame that doesn't match.
typedef struct {
    /// 0: no file. 1: nothing in it. 2: its header is damaged. 3: a log.
    int state;
    /// They distinguish this log from earlier ones in the same file.
    uint32_t salts[2];
    /// The number of frames from the start that match their checksums, up to the last one that ends a transaction.
    int64_t committed_frames;
    /// The number of later frames that belong to this log, match the checksum of the previous frame, and end a transaction.
    int64_t commits_behind;
    /// Whether a matching frame of this log follows the last of those.
    int has_frames_behind;
} roost_log_report;

/// Reads a log.
///
/// - Returns: 0, or an error number.
int roost_examine_log(const char *path, roost_log_report *report);

/// The contents of a database file, read without SQLite.
typedef struct {
    int64_t pages;
    /// The first that doesn't match its checksum; 0 for none.
    int64_t first_damaged;
    /// Over all of them.
    uint64_t checksum;
} roost_page_report;

/// Reads the next pages of a database file.
///
/// - Returns: 1, 0 at the end of the file, or a negative error number.
int roost_read_pages(int descriptor, roost_page_report *report);

/// Turns off the system's read-ahead for a file.
void roost_read_nothing_ahead(int descriptor);

/// Enables `roost_begin_at_once`, for all connections of the process that use the system's VFS.
///
/// - path: a file in the same folder as the databases, but not one of theirs: a process that closes one of those loses its locks on it.
/// - Returns: whether the system can tell which parts of files there are in memory. If not, `roost_begin_at_once` must not be used.
int roost_allow_at_once(const char *path);

/// From now on the calling thread's connections only read what the system has in memory, and fail with SQLITE_IOERR if a read
/// would wait for the disk.
void roost_begin_at_once(void);

/// Ends that.
///
/// - Returns: Whether everything requested was in memory.
int roost_end_at_once(void);

/// A counting semaphore, which starts at 0. Its timeouts aren't affected when the machine's clock is set.
typedef struct roost_semaphore roost_semaphore;
roost_semaphore *roost_semaphore_make(void);
/// No thread may be waiting for it.
void roost_semaphore_free(roost_semaphore *semaphore);
void roost_semaphore_signal(roost_semaphore *semaphore);
void roost_semaphore_wait(roost_semaphore *semaphore);

/// Waits up to a time limit.
///
/// - Returns: 1 if it was signalled, 0 if not.
int roost_semaphore_wait_for(roost_semaphore *semaphore, int64_t nanoseconds);

/// Names the calling thread, if the system shows thread names. 15 bytes are kept.
void roost_name_thread(const char *name);

/// Lets other threads run first, if threads have their own priorities.
void roost_lower_priority(void);

/// Starts writing a file's dirty pages to the disk, and waits only for writes started earlier. It guarantees no durability.
///
/// - Returns: 0, or an error number, such as that of a disk that refused an earlier write. The system reports it once per
///   descriptor: an fsync of this one succeeds afterwards, although the file isn't complete.
int roost_write_behind(int descriptor);

/// Evicts a file that is on disk from the system's page cache, so that reading it reads the disk. On systems without such a call it does nothing.
void roost_drop_cache(int descriptor);

/// Turns off SQLite's memory statistics in the whole process. Does nothing once SQLite has been used.
void roost_leave_sqlite_uncounted(void);

/// Returns large blocks to the system when they are freed.
void roost_return_memory(void);

/// Returns all free memory to the system now.
void roost_trim_memory(void);

#endif
