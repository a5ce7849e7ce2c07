#ifndef ROOST_POWER_CUT_H
#define ROOST_POWER_CUT_H

#include <sqlite3.h>

// The VFS's notices about files, each before the operation.

void power_will_write(const char *path, const void *bytes, int count, sqlite3_int64 offset);
void power_will_truncate(const char *path, sqlite3_int64 size);
/// - Returns: the argument for `power_did_sync`.
long power_will_sync(const char *path);
void power_did_sync(const char *path, long last);

#endif
