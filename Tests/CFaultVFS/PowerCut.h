#ifndef ROOST_POWER_CUT_H
#define ROOST_POWER_CUT_H

#include <sqlite3.h>

// What the VFS says of files, each before it does it.

void power_will_write(const char *path, const void *bytes, int count, sqlite3_int64 offset);
void power_will_truncate(const char *path, sqlite3_int64 size);
/// - Returns: what `power_did_sync` is to be told.
long power_will_sync(const char *path);
void power_did_sync(const char *path, long last);

#endif
