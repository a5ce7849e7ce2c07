#ifndef ROOST_FAULT_VFS_H
#define ROOST_FAULT_VFS_H

#include <stdint.h>

/// A VFS named "faults" whose files fail when a test says so. Registered once; files not named by a fault are unaffected.
int fault_vfs_register(void);

/// The same, and databases opened without the name of a VFS use this one from then on.
int fault_vfs_register_as_default(void);

/// With `fault_index`, the path is the database's, and growing the index of its log fails.
enum fault_operation { fault_read = 1, fault_write = 2, fault_sync = 3, fault_index = 4 };

/// The next operation of a kind on a file whose path has this ending fails with a code of SQLite, and so do all further ones.
///
/// - passes: how many succeed first.
/// - is_short: whether a failing write writes its first half.
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_begin(const char *path_ending, int operation, int code, int passes, int is_short);

/// The next write of a file whose path has this ending fails as in SQLite's own VFS if the system call fails with an error number, and so do all further
/// ones: with `ENOSPC` as SQLITE_FULL, with any other as SQLITE_IOERR_WRITE.
///
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_begin_write_error(const char *path_ending, int error, int passes, int is_short);

/// - Returns: how often it has failed.
int fault_end(int fault);

/// From here on, the contents on disk of a file whose path has this ending are kept beside it, as `PATH.synced`: the file is copied after each fsync.
///
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_keep_synced(const char *path_ending);

// MARK: Power cuts

/// The operation at which the power was cut.
enum power_operation { power_on = 0, power_write = 1, power_sync = 2 };

struct power_cut {
    /// `power_on` if it wasn't cut yet.
    int operation;
    /// Whether it was on the log rather than the database.
    int is_log;
    /// Bytes of the database and of the log that were written but not synced, and are lost.
    long long lost_bytes[2];
    /// The last number of `power_note`.
    long long noted;
};

/// From here on the contents on disk of a directory's `roost.sqlite` and `roost.sqlite-wal` are tracked, if they are accessed through the VFS
/// "faults". They must not be open yet, and must be entirely on disk.
///
/// - directory: as SQLite names it, without links.
/// - Returns: a number for the other functions; -1 if there are too many.
int power_begin(const char *directory);

/// Cuts the power at the given number of calls from now: the next one is the first. Then the two files and `roost.state` are written into another
/// directory as the disk would have them: with everything synced, and any part of the rest. The calls themselves continue as if nothing had
/// happened.
///
/// - operation: which calls count; with `power_on` all writes, truncations and syncs of both files do.
/// - is_log: which file's calls count, unless all do.
void power_cut_after(int disk, int operation, int is_log, int calls, uint64_t seed, const char *into);

/// Records a test's progress. A cut has the last number recorded before it.
void power_note(int disk, long long number);

struct power_cut power_look(int disk);

void power_end(int disk);

#endif
