#include "LogFrames.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int is_zero(const unsigned char *bytes, size_t count) {
    for (size_t index = 0; index < count; index++) {
        if (bytes[index] != 0) return 0;
    }
    return 1;
}

int roost_examine_log(const char *path, roost_log_report *report) {
    memset(report, 0, sizeof *report);
    FILE *file = fopen(path, "rbe");
    if (file == NULL) return errno == ENOENT ? 0 : errno;
    unsigned char header[log_header_size];
    size_t count = fread(header, 1, sizeof header, file);
    // A file that a failing machine has extended, but not filled yet, reads as zeros.
    if (is_zero(header, count)) {
        report->state = ferror(file) ? 2 : 1;
        fclose(file);
        return 0;
    }
    uint32_t magic = big_endian(header);
    int is_big_endian = (int)(magic & 1);
    uint32_t sum[2] = {0, 0};
    add_to_log_checksum(sum, header, 24, is_big_endian);
    if (count < sizeof header || (magic | 1) != 0x377f0683 || big_endian(header + 8) != ROOST_PAGE_SIZE
        || sum[0] != big_endian(header + 24) || sum[1] != big_endian(header + 28)) {
        report->state = 2;
        fclose(file);
        return 0;
    }
    report->state = 3;
    report->salts[0] = big_endian(header + 16);
    report->salts[1] = big_endian(header + 20);

    unsigned char frame[frame_size];
    int is_behind = 0;
    for (int64_t number = 1; fread(frame, 1, frame_size, file) == frame_size; number++) {
        uint32_t own[2] = {big_endian(frame + 16), big_endian(frame + 20)};
        add_to_log_checksum(sum, frame, 8, is_big_endian);
        add_to_log_checksum(sum, frame + frame_header_size, ROOST_PAGE_SIZE, is_big_endian);
        int matches = memcmp(frame + 8, header + 16, 8) == 0 && big_endian(frame) != 0 && sum[0] == own[0] && sum[1] == own[1];
        int ends_transaction = big_endian(frame + 4) != 0;
        // The next frame continues from the checksum in this one, right or wrong: so frames after damage are recognized.
        sum[0] = own[0];
        sum[1] = own[1];
        if (!matches) {
            is_behind = 1;
        } else if (!is_behind) {
            if (ends_transaction) report->committed_frames = number;
        } else if (ends_transaction) {
            report->commits_behind++;
            report->has_frames_behind = 0;
        } else if (report->commits_behind > 0) {
            report->has_frames_behind = 1;
        }
    }
    int failed = ferror(file) ? EIO : 0;
    fclose(file);
    return failed;
}
