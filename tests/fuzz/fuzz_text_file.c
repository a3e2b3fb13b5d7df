/* Any bytes as a file of text, plain or gzipped: the lines together are the whole text. */
#define _GNU_SOURCE
#include "base/memory.h"
#include "io/text_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All of a file, in pieces of which a third is passed each time; NULL: it is no text. */
static char *read_whole(const char *path, size_t *n)
{
    keel_lines *l = NULL;
    char *all = NULL, *text;
    size_t there;
    bool last = false;
    keel_status s = keel_lines_open(&l, path);
    while (s >= 0 && !last && (s = keel_lines_more(l, &text, &there, &last)) >= 0) {
        const size_t take = last ? there : there / 3;
        all = realloc(all, *n + take + 1);
        memcpy(all + *n, text, take);
        *n += take;
        keel_lines_pass(l, take);
    }
    keel_lines_close(l);
    if (s >= 0) return all;
    free(all);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64], *line;
    size_t n = 0, at = 0, length;
    keel_lines *lines = NULL;
    keel_status s;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) __builtin_trap();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    char *const text = read_whole(path, &n);
    if (keel_lines_open(&lines, path) >= 0) {
        while ((s = keel_lines_next(lines, &line, &length)) == KEEL_OK) {
            if (!text) continue;
            if (length > n - at || memcmp(text + at, line, length)) __builtin_trap();
            at += length;
            at += at < n && text[at] == '\r';
            at += at < n;
        }
        if (text && (s != KEEL_END || at != n)) __builtin_trap();
    }
    keel_lines_close(lines);
    free(text);
    close(fd);
    return 0;
}
