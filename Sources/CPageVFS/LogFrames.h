#ifndef ROOST_LOG_FRAMES_H
#define ROOST_LOG_FRAMES_H

#include "CPageVFS.h"

/// The format of SQLite's write-ahead log: a header, then frames of a header and a page.
enum { log_header_size = 32, frame_header_size = 24, frame_size = frame_header_size + ROOST_PAGE_SIZE };

static inline uint32_t big_endian(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline uint32_t little_endian(const unsigned char *bytes) {
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

/// The checksum of a log, which continues from frame to frame.
static inline void add_to_log_checksum(uint32_t sum[2], const unsigned char *bytes, int count, int is_big_endian) {
    for (int index = 0; index < count; index += 8) {
        uint32_t first = is_big_endian ? big_endian(bytes + index) : little_endian(bytes + index);
        uint32_t second = is_big_endian ? big_endian(bytes + index + 4) : little_endian(bytes + index + 4);
        sum[0] += first + sum[1];
        sum[1] += second + sum[0];
    }
}

#endif
