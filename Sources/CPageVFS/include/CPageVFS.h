#ifndef ROOST_PAGE_VFS_H
#define ROOST_PAGE_VFS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

/// Pages of a Roost database have this size, and end in a checksum of 8 bytes.
#define ROOST_PAGE_SIZE 4096
#define ROOST_RESERVED_BYTES 8

/// How many pages are read between two pauses: 32 KiB.
#define ROOST_PAGES_AT_ONCE 8

/// Registers a VFS that stands on another one, and adds a checksum to each page that is written to a database file and verifies it when
/// the page is read. A page that is read from the write-ahead log is held against the checksum of its frame. What doesn't match is
/// SQLITE_IOERR_DATA, and never reaches SQLite. Does nothing if the name is registered already.
///
/// - base: the VFS to stand on; NULL for the system's own.
/// - is_default: whether connections that name no VFS go through it.
int roost_vfs_register(const char *name, const char *base, int is_default);

/// 64 bits of the bytes and the seed. Every change of up to 8 bytes in a row that are aligned changes it.
uint64_t roost_checksum(const void *bytes, size_t count, uint64_t seed);

/// Whether a page of a database file carries the checksum that belongs to it. The first page has the number 1.
int roost_page_is_intact(const void *page, uint32_t number);

/// Whether the pages of a connection's main file carry checksums, which are verified.
int roost_has_checksums(sqlite3 *connection);

/// Whether the main file of a connection goes through the VFS above.
int roost_uses_vfs(sqlite3 *connection);

/// Has what was written to a connection's main file on disk. Returns a code of SQLite's.
int roost_sync_database(sqlite3 *connection);

/// Syncs a connection's main file after every `pages` pages with checksums, and not only where SQLite asks for it. Whoever waits for the same disk meanwhile
/// then waits for a few pages, and not for all of them. Returns a code of SQLite's.
int roost_sync_in_steps(sqlite3 *connection, int pages);

/// What is told of a connection's reading: the nanoseconds that `ROOST_PAGES_AT_ONCE` pages took.
typedef void (*roost_read_note)(void *context, int64_t nanoseconds);

/// Has a function called each time that a connection has read `ROOST_PAGES_AT_ONCE` pages with checksums of its main file, on the thread that reads; NULL for no more
/// of that. The connection goes on when the function returns. Returns a code of SQLite's.
int roost_note_reads(sqlite3 *connection, roost_read_note note, void *context);

/// Has a connection's log on disk as it is, and its length too. Returns a code of SQLite's.
int roost_sync_log(sqlite3 *connection);

/// Asks for the bytes at the end of each page that checksums need. It holds for a file that is new, and for others after VACUUM.
int roost_reserve_bytes(sqlite3 *connection);

/// Keeps the newest count of frames in the write-ahead log in `*frames`, which has to outlive the connection. Turns automatic checkpoints
/// off.
void roost_count_log_frames(sqlite3 *connection, int *frames);

/// Cuts the file of a connection's log off to so many bytes with the first commit of each log that it begins, if it is larger. What that commit has written
/// stays, and is on disk by then.
int roost_limit_log(sqlite3 *connection, int64_t size);

/// Takes room on the disk for what the index of a connection's log needs with so many frames. Returns a code of SQLite's.
int roost_reserve_log_index(sqlite3 *connection, int frames);

/// Sets the size of a connection's page cache, in KiB.
int roost_set_page_cache(sqlite3 *connection, int kibibytes);

/// Has the plan of a statement depend on its text alone. Otherwise a value that is compared with a column of a partial index, or with LIKE, has
/// its statement compiled anew each time that it is bound.
int roost_keep_plans(sqlite3 *connection);

/// How often the statements that a connection keeps were compiled anew.
int roost_recompilations(sqlite3 *connection);

/// Leaves the log as it is when the connection closes.
void roost_keep_log_on_close(sqlite3 *connection, int keeps);

/// Sets a number in the header of the database file, in a transaction of its own or in the one that is open.
int roost_set_generation(sqlite3 *connection, uint32_t generation);
int roost_set_application_id(sqlite3 *connection, int32_t id);

/// The last damage that this thread has met, and forgets it: 0 for none, 1 for a page of a database file, 2 for one of a log.
int roost_take_damage(uint32_t *page);

/// Damaged pages that were met since the process began.
uint64_t roost_damage_count(void);

/// What a write-ahead log holds, read past SQLite, which ends at the first frame that doesn't match and says nothing.
typedef struct {
    /// 0: no file. 1: nothing in it. 2: its header is damaged. 3: a log.
    int state;
    /// They tell this log from those that were written to the same file before.
    uint32_t salts[2];
    /// Frames from the start that match their checksums, up to the last one that ends a transaction.
    int64_t committed_frames;
    /// Frames further on that belong to this log, match the checksum of the frame before them, and end a transaction.
    int64_t commits_behind;
    /// Whether a matching frame of this log stands behind the last of those.
    int has_frames_behind;
} roost_log_report;

/// Reads a log.
///
/// - Returns: 0, or an error number.
int roost_examine_log(const char *path, roost_log_report *report);

/// What a database file holds, read past SQLite.
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

/// Has the system read of a file what is asked for, and nothing that may be asked for next.
void roost_read_nothing_ahead(int descriptor);

/// Makes `roost_begin_at_once` possible, for all connections of the process that go through the system's VFS.
///
/// - path: a file beside the databases, and none of theirs: a process that closes one loses its locks on it.
/// - Returns: whether the system can tell what it has in memory of files there. If not, nothing may begin.
int roost_allow_at_once(const char *path);

/// From now on the calling thread's connections read what the system has in memory, and fail with SQLITE_IOERR where a read would wait for the disk.
void roost_begin_at_once(void);

/// Ends that.
///
/// - Returns: Whether everything was there that was asked for.
int roost_end_at_once(void);

/// A counting semaphore, which begins at 0, and whose times don't follow the machine's clock when that is set.
typedef struct roost_semaphore roost_semaphore;
roost_semaphore *roost_semaphore_make(void);
/// Nobody may be waiting for it.
void roost_semaphore_free(roost_semaphore *semaphore);
void roost_semaphore_signal(roost_semaphore *semaphore);
void roost_semaphore_wait(roost_semaphore *semaphore);

/// Waits so long at most.
///
/// - Returns: 1 if it was signalled, 0 if not.
int roost_semaphore_wait_for(roost_semaphore *semaphore, int64_t nanoseconds);

/// Names the calling thread, where the system shows names of threads. 15 bytes are kept.
void roost_name_thread(const char *name);

/// Lets other threads go first, where threads have priorities of their own.
void roost_lower_priority(void);

/// Has the system write what a file has in memory to the disk, and waits only for what it was told to write before. Keeps nothing safe.
///
/// - Returns: 0, or an error number, as that of a disk that refused what was written before. The system tells each descriptor of it once: an fsync of this
///   one succeeds afterwards, and the file isn't whole.
int roost_write_behind(int descriptor);

/// Has the system let go of what it has in memory of a file that is on disk, so that reading it reads the disk. On systems without such a call it does
/// nothing.
void roost_drop_cache(int descriptor);

/// Has SQLite count its memory no more, in all of the process. Does nothing once SQLite was used.
void roost_leave_sqlite_uncounted(void);

/// Gives large blocks back to the system when they are freed.
void roost_return_memory(void);

/// Gives all that is free back to the system now.
void roost_trim_memory(void);

#endif
