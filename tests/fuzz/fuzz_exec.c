/* Any bytes as the output of a program: batches of x and y, each an .npy. */
#define _GNU_SOURCE /* memfd_create */
#include "base/memory.h"
#include "keel/keel.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { BATCHES = 50 };
    char spec[128];
    keel_dataset *d = NULL;
    keel_reader *r = NULL;
    const keel_tensor *field;
    const keel_reader_options o = { .size = sizeof o, .threads = -1 };
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) __builtin_trap();
    snprintf(spec, sizeof spec, "exec(x,y):exec cat /proc/%d/fd/%d", (int)getpid(), fd);
    keel_status s = keel_dataset_open(&d, spec, NULL);
    if (s >= 0) s = keel_reader_create(&r, d, &o);
    for (int i = 0; s == KEEL_OK && i < BATCHES; i++) s = keel_reader_next(r, &field);
    keel_reader_destroy(r);
    keel_dataset_destroy(d);
    close(fd);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
