#include "CPageVFS.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/// Reads until the buffer is full or the file ends. Returns the number of bytes, or a negative error number.
static ssize_t read_whole(int descriptor, unsigned char *bytes, size_t room) {
    size_t count = 0;
    while (count < room) {
        ssize_t result = read(descriptor, bytes + count, room - count);
        if (result == 0) break;
        if (result > 0) count += (size_t)result;
        else if (errno != EINTR) return -errno;
    }
    return (ssize_t)count;
}

int roost_read_pages(int descriptor, roost_page_report *report) {
    unsigned char bytes[ROOST_PAGES_AT_ONCE * ROOST_PAGE_SIZE];
    ssize_t count = read_whole(descriptor, bytes, sizeof bytes);
    if (count < 0) return (int)count;
    for (ssize_t start = 0; start < count; start += ROOST_PAGE_SIZE) {
        int64_t number = ++report->pages;
        size_t size = (size_t)(count - start < ROOST_PAGE_SIZE ? count - start : ROOST_PAGE_SIZE);
        report->checksum = roost_checksum(bytes + start, size, report->checksum);
        // SQLite places its locks here, and never writes this page.
        int is_lock_page = (number - 1) == 0x40000000 / ROOST_PAGE_SIZE;
        int is_intact = size == ROOST_PAGE_SIZE && (is_lock_page || roost_page_is_intact(bytes + start, (uint32_t)number));
        if (!is_intact && report->first_damaged == 0) report->first_damaged = number;
    }
    return count == sizeof bytes;
}

void roost_read_nothing_ahead(int descriptor) {
#ifdef __linux__
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
#elif defined(F_RDAHEAD)
    fcntl(descriptor, F_RDAHEAD, 0);
#else
    (void)descriptor;
#endif
}
