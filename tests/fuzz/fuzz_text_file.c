/* Any bytes as a file of text, plain or gzipped: the lines together are the whole text. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "io/text_file.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], *text = NULL, *line;
    size_t n = 0, at = 0, length;
    keel_lines *lines = NULL;
    keel_status s;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) __builtin_trap();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const keel_status whole = keel_text_file_read(path, &text, &n);
    if (keel_lines_open(&lines, path) >= 0) {
        while ((s = keel_lines_next(lines, &line, &length)) == KEEL_OK) {
            if (whole < 0) continue;
            if (length > n - at || memcmp(text + at, line, length)) __builtin_trap();
            at += length;
            at += at < n && text[at] == '\r';
            at += at < n;
        }
        if (whole >= 0 && (s != KEEL_END || at != n)) __builtin_trap();
    }
    keel_lines_close(lines);
    keel_free(text);
    close(fd);
    return 0;
}
