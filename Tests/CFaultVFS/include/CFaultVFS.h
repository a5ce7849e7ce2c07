#ifndef ROOST_FAULT_VFS_H
#define ROOST_FAULT_VFS_H

/// A VFS named "faults" whose files fail when a test says so. Registered once; files that no fault names are left alone.
int fault_vfs_register(void);

enum fault_operation { fault_read = 1, fault_write = 2, fault_sync = 3 };

/// The next operation of a kind on a file whose path ends so fails with a code of SQLite, and all further ones do too.
///
/// - passes: how many go well before.
/// - is_short: whether a write that fails writes its first half.
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_begin(const char *path_ending, int operation, int code, int passes, int is_short);

/// - Returns: how often it has failed.
int fault_end(int fault);

/// From here on, what a file whose path ends so has on disk is kept beside it, as `PATH.synced`: it is copied after each fsync.
///
/// - Returns: a number for `fault_end`; -1 if there are too many.
int fault_keep_synced(const char *path_ending);

#endif
