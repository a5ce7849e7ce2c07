#ifndef ROOST_FAULT_VFS_H
#define ROOST_FAULT_VFS_H

#include <stdint.h>

/// A VFS named "faults" whose files fail when a test says so. Registered once; files that no fault names are left alone.
int fault_vfs_register(void);

/// The same, and a database that is opened without the name of a VFS is opened with this one from then on.
int fault_vfs_register_as_default(void);

/// With `fault_index`, the path is the database's, and what fails is to make the index of its log longer.
enum fault_operation { fault_read = 1, fault_write = 2, fault_sync = 3, fault_index = 4 };

/// The next operation of a kind on a file whose path ends so fails with a code of SQLite, and all further ones do too.
///
/// - passes: how many go well before.
/// - is_short: whether a write that fails writes its first half.
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_begin(const char *path_ending, int operation, int code, int passes, int is_short);

/// The next write of a file whose path ends so fails as it does in SQLite's own VFS if the system's call fails with an error number, and all further
/// ones do too: with `ENOSPC` as SQLITE_FULL, with any other as SQLITE_IOERR_WRITE.
///
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_begin_write_error(const char *path_ending, int error, int passes, int is_short);

/// - Returns: how often it has failed.
int fault_end(int fault);

/// From here on, what a file whose path ends so has on disk is kept beside it, as `PATH.synced`: it is copied after each fsync.
///
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_keep_synced(const char *path_ending);

// MARK: Power cuts

/// What the power was cut at.
enum power_operation { power_on = 0, power_write = 1, power_sync = 2 };

struct power_cut {
    /// `power_on` if it wasn't cut yet.
    int operation;
    /// Whether that was of the log, and not of the database.
    int is_log;
    /// Bytes of the database and of the log that were written, weren't synced, and are lost.
    long long lost_bytes[2];
    /// The last number of `power_note`.
    long long noted;
};

/// From here on it is known what is on disk of a directory's `roost.sqlite` and `roost.sqlite-wal`, if they are reached through the VFS
/// "faults". Nobody has them open yet, and what they have is on disk.
///
/// - directory: as SQLite names it, without links.
/// - Returns: a number for the other functions; -1 if there are too many.
int power_begin(const char *directory);

/// Cuts the power at so many calls from now: the next one is the first. Then the two files and `roost.state` are written into another
/// directory as the disk would have them: with what was synced, and any part of what wasn't. The calls themselves go on as if nothing had
/// happened.
///
/// - operation: which calls count; with `power_on` all writes, cuts of the length and syncs of both files do.
/// - is_log: those of which file, unless all count.
void power_cut_after(int disk, int operation, int is_log, int calls, uint64_t seed, const char *into);

/// Notes how far a test is. A cut has the number that was noted last before it.
void power_note(int disk, long long number);

struct power_cut power_look(int disk);

void power_end(int disk);

#endif
