/* Any bytes as an HDF5 file of data: its structure, and the first rows of each array. */
#define _GNU_SOURCE /* memfd_create */
#include "io/h5_data.h"
#include "base/memory.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_rows(keel_h5_data *d, size_t i)
{
    const keel_h5_array *a = &d->arrays[i];
    keel_scratch s = { 0 };
    if (keel_h5_data_index(d, i) < 0 || a->shape.rank < 1 || a->shape.dim[0] < 1) return;
    const size_t n =
        (size_t)(keel_shape_count(&a->shape) / a->shape.dim[0]) * a->type.element_bytes;
    if (n > 1 << 20) return;
    void *row = keel_calloc(n, 1);
    for (int64_t k = 0; row && k < a->shape.dim[0] && k < 8; k++)
        keel_h5_data_row(d, i, k, row, &s);
    keel_free(row);
    keel_scratch_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    keel_h5_data *d = NULL;
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size && keel_h5_data_open(&d, path) >= 0)
        for (size_t i = 0; i < d->count && i < 16; i++) read_rows(d, i);
    keel_h5_data_close(d);
    close(fd);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
