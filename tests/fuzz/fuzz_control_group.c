/* Any bytes as the files that tell the control group of a process: its list of groups, its mounts,
 * a limit, a usage and statistics, with a zero byte between two. */
#include "device/memory_limit.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[] = "/tmp/keel_fuzz_group_XXXXXX";

static const char *const names[] = { "/proc/self/cgroup", "/proc/self/mountinfo",
                                     "/sys/memory.max",   "/sys/memory.current",
                                     "/sys/memory.stat",  "/sys/a/memory.limit_in_bytes" };
enum { NAMES = sizeof names / sizeof *names };

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s%s", root, name);
    return path;
}

static void leave(void)
{
    static const char *const folders[] = { "/sys/a", "/sys", "/proc/self", "/proc", "" };
    for (int i = 0; i < NAMES; i++) unlink(path_of(names[i]));
    for (int i = 0; i < 5; i++) rmdir(path_of(folders[i]));
}

static void begin(void)
{
    static bool begun;
    if (begun) return;
    begun = true;
    if (!mkdtemp(root)) abort();
    mkdir(path_of("/sys"), 0700);
    mkdir(path_of("/sys/a"), 0700);
    mkdir(path_of("/proc"), 0700);
    mkdir(path_of("/proc/self"), 0700);
    atexit(leave);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    begin();
    for (int i = 0; i < NAMES; i++) {
        const uint8_t *end = size ? memchr(data, 0, size) : NULL;
        const size_t n = end && i < NAMES - 1 ? (size_t)(end - data) : size;
        FILE *f = fopen(path_of(names[i]), "w");
        if (!f) abort();
        fwrite(data, 1, n, f);
        fclose(f);
        data += n;
        size -= n;
        if (size && i < NAMES - 1) data++, size--;
    }
    keel_memory_limit m;
    keel_memory_limit_find(&m, root);
    if (m.limit >= 0 ? m.free < 0 || m.free > m.limit : m.free != -1) __builtin_trap();
    return 0;
}
