#include "CPageVFS.h"

#include <errno.h>
#include <stdio.h>

int roost_read_pages(const char *path, int64_t *pages, int64_t *damaged, uint64_t *checksum) {
    *pages = *damaged = 0;
    *checksum = 0;
    FILE *file = fopen(path, "rbe");
    if (file == NULL) return errno;
    unsigned char page[ROOST_PAGE_SIZE];
    size_t count;
    while ((count = fread(page, 1, sizeof page, file)) > 0) {
        int64_t number = ++*pages;
        *checksum = roost_checksum(page, count, *checksum);
        // SQLite keeps its locks at this place, and never writes the page there.
        int is_lock_page = (number - 1) == 0x40000000 / ROOST_PAGE_SIZE;
        int is_intact = count == sizeof page && (is_lock_page || roost_page_is_intact(page, (uint32_t)number));
        if (!is_intact && *damaged == 0) *damaged = number;
    }
    int result = ferror(file) ? EIO : 0;
    fclose(file);
    return result;
}
