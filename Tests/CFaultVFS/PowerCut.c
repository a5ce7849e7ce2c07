#include "PowerCut.h"

#include "CFaultVFS.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A disk on which a power cut leaves everything synced, and any part of the rest:
// 1. Each write, and each truncation of a file, is recorded before it is made. A completed sync covers those recorded before it began.
// 2. At the call at which the power is cut, the files are written elsewhere as the disk would have them. The calls themselves continue.

enum { disks_max = 16, files_max = 2 };
/// The unit that a disk writes as a whole.
enum { sector_size = 512 };

/// An unsynced write; without bytes the file was truncated at the offset.
typedef struct Change {
    struct Change *next;
    long number;
    sqlite3_int64 offset;
    size_t count;
    unsigned char *bytes;
} Change;

typedef struct Content {
    unsigned char *bytes;
    size_t size, room;
} Content;

typedef struct DiskFile {
    Content synced;
    Change *first, **end;
} DiskFile;

typedef struct Disk {
    int is_on;
    char directory[1024], into[1024];
    DiskFile files[files_max];
    long changes;
    int calls_left, only_operation, only_log;
    uint64_t random;
    long long noted;
    struct power_cut cut;
} Disk;

static const char *const names[files_max] = {"/roost.sqlite", "/roost.sqlite-wal"};
static Disk disks[disks_max];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t next_random(uint64_t *state) {
    uint64_t mixed = *state += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return mixed ^ mixed >> 31;
}

// MARK: Contents

static void set_size(Content *content, size_t size) {
    if (size > content->room) {
        content->room = size * 2;
        content->bytes = realloc(content->bytes, content->room);
        if (content->bytes == NULL) abort();
    }
    // The gap is filled with zeros, as in a file.
    if (size > content->size) memset(content->bytes + content->size, 0, size - content->size);
    content->size = size;
}

static void put(Content *content, const unsigned char *bytes, size_t count, size_t offset) {
    if (offset + count > content->size) set_size(content, offset + count);
    memcpy(content->bytes + offset, bytes, count);
}

static void apply(Content *content, const Change *change) {
    if (change->bytes == NULL) {
        if ((size_t)change->offset < content->size) set_size(content, (size_t)change->offset);
    } else {
        put(content, change->bytes, change->count, (size_t)change->offset);
    }
}

static void read_file(Content *content, const char *path) {
    unsigned char buffer[4096];
    FILE *file = fopen(path, "rb");
    content->size = 0;
    for (size_t count; file != NULL && (count = fread(buffer, 1, sizeof buffer, file)) > 0;) put(content, buffer, count, content->size);
    if (file != NULL) fclose(file);
}

static void write_file(const Content *content, const char *path) {
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(content->bytes, 1, content->size, file) != content->size || fclose(file) != 0) abort();
}

// MARK: The cut

/// Applies the sectors of a write that survive a power cut.
///
/// - Returns: The number of lost bytes.
static size_t apply_sectors(Content *content, const Change *change, uint64_t *random) {
    size_t lost = 0, end = (size_t)change->offset + change->count;
    for (size_t from = (size_t)change->offset, to; from < end; from = to) {
        to = from - from % sector_size + sector_size;
        if (to > end) to = end;
        if (next_random(random) & 1) {
            put(content, change->bytes + (from - (size_t)change->offset), to - from, from);
        } else {
            lost += to - from;
        }
    }
    return lost;
}

/// The rest of a file: all of it, the synced part, the first few writes, or any of their sectors.
static size_t leave(const DiskFile *file, Content *left, uint64_t *random) {
    size_t lost = 0, count = 0, index = 0;
    for (const Change *change = file->first; change != NULL; change = change->next) count++;
    uint64_t way = next_random(random) % 4;
    size_t kept = way == 0 || count == 0 ? count : way == 1 ? 0 : (size_t)(next_random(random) % count);
    for (const Change *change = file->first; change != NULL; change = change->next, index++) {
        int is_torn = change->bytes != NULL && (way == 3 || (way == 2 && index == kept));
        int is_kept = way == 3 ? (int)(next_random(random) & 1) : index < kept;
        if (is_torn) {
            lost += apply_sectors(left, change, random);
        } else if (is_kept) {
            apply(left, change);
        } else {
            lost += change->count;
        }
    }
    return lost;
}

static void cut(Disk *disk, int operation, int is_log) {
    char path[2048];
    for (int index = 0; index < files_max; index++) {
        const Content *synced = &disk->files[index].synced;
        Content left = {0};
        put(&left, synced->bytes, synced->size, 0);
        disk->cut.lost_bytes[index] = (long long)leave(&disk->files[index], &left, &disk->random);
        snprintf(path, sizeof path, "%s%s", disk->into, names[index]);
        write_file(&left, path);
        free(left.bytes);
    }
    // It isn't written through SQLite. Everything it lists as on disk was synced before.
    Content state = {0};
    snprintf(path, sizeof path, "%s/roost.state", disk->directory);
    read_file(&state, path);
    snprintf(path, sizeof path, "%s/roost.state", disk->into);
    write_file(&state, path);
    free(state.bytes);
    disk->cut.operation = operation;
    disk->cut.is_log = is_log;
    disk->cut.noted = disk->noted;
}

static void count_call(Disk *disk, int operation, int is_log) {
    if (disk->only_operation != power_on && (operation != disk->only_operation || is_log != disk->only_log)) return;
    if (disk->calls_left > 0 && --disk->calls_left == 0) cut(disk, operation, is_log);
}

// MARK: Calls of the VFS

/// With the lock held: the disk of a file, if there is one.
static Disk *disk_of(const char *path, int *file) {
    for (int index = 0; path != NULL && index < disks_max; index++) {
        if (!disks[index].is_on) continue;
        size_t length = strlen(disks[index].directory);
        if (strncmp(path, disks[index].directory, length) != 0) continue;
        for (*file = 0; *file < files_max; (*file)++) {
            if (strcmp(path + length, names[*file]) == 0) return &disks[index];
        }
    }
    return NULL;
}

static void note(const char *path, const void *bytes, size_t count, sqlite3_int64 offset) {
    int index = 0;
    pthread_mutex_lock(&lock);
    Disk *disk = disk_of(path, &index);
    if (disk != NULL) {
        Change *change = calloc(1, sizeof(Change));
        if (change == NULL) abort();
        change->number = ++disk->changes;
        change->offset = offset;
        change->count = count;
        if (bytes != NULL && (change->bytes = malloc(count)) == NULL) abort();
        if (bytes != NULL) memcpy(change->bytes, bytes, count);
        *disk->files[index].end = change;
        disk->files[index].end = &change->next;
        count_call(disk, power_write, index);
    }
    pthread_mutex_unlock(&lock);
}

void power_will_write(const char *path, const void *bytes, int count, sqlite3_int64 offset) { note(path, bytes, (size_t)count, offset); }

void power_will_truncate(const char *path, sqlite3_int64 size) { note(path, NULL, 0, size); }

long power_will_sync(const char *path) {
    int index = 0;
    pthread_mutex_lock(&lock);
    Disk *disk = disk_of(path, &index);
    long last = disk == NULL ? 0 : disk->changes;
    if (disk != NULL) count_call(disk, power_sync, index);
    pthread_mutex_unlock(&lock);
    return last;
}

/// Counts the changes up to one as synced.
static void sync_up_to(DiskFile *file, long last) {
    while (file->first != NULL && file->first->number <= last) {
        Change *change = file->first;
        apply(&file->synced, change);
        file->first = change->next;
        if (file->first == NULL) file->end = &file->first;
        free(change->bytes);
        free(change);
    }
}

void power_did_sync(const char *path, long last) {
    int index = 0;
    pthread_mutex_lock(&lock);
    Disk *disk = disk_of(path, &index);
    if (disk != NULL) sync_up_to(&disk->files[index], last);
    pthread_mutex_unlock(&lock);
}

// MARK: Calls of tests

int power_begin(const char *directory) {
    int found = -1;
    char path[2048];
    pthread_mutex_lock(&lock);
    for (int index = 0; index < disks_max && found < 0; index++) {
        Disk *disk = &disks[index];
        if (disk->is_on) continue;
        memset(disk, 0, sizeof(Disk));
        strncpy(disk->directory, directory, sizeof disk->directory - 1);
        for (int file = 0; file < files_max; file++) {
            disk->files[file].end = &disk->files[file].first;
            snprintf(path, sizeof path, "%s%s", directory, names[file]);
            read_file(&disk->files[file].synced, path);
        }
        disk->is_on = 1;
        found = index;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void power_cut_after(int disk, int operation, int is_log, int calls, uint64_t seed, const char *into) {
    pthread_mutex_lock(&lock);
    disks[disk].only_operation = operation;
    disks[disk].only_log = is_log;
    strncpy(disks[disk].into, into, sizeof disks[disk].into - 1);
    disks[disk].random = seed;
    disks[disk].calls_left = calls;
    memset(&disks[disk].cut, 0, sizeof disks[disk].cut);
    pthread_mutex_unlock(&lock);
}

void power_note(int disk, long long number) {
    pthread_mutex_lock(&lock);
    disks[disk].noted = number;
    pthread_mutex_unlock(&lock);
}

struct power_cut power_look(int disk) {
    pthread_mutex_lock(&lock);
    struct power_cut cut = disks[disk].cut;
    pthread_mutex_unlock(&lock);
    return cut;
}

void power_end(int disk) {
    pthread_mutex_lock(&lock);
    disks[disk].is_on = 0;
    for (int file = 0; file < files_max; file++) {
        sync_up_to(&disks[disk].files[file], disks[disk].changes);
        free(disks[disk].files[file].synced.bytes);
    }
    pthread_mutex_unlock(&lock);
}
