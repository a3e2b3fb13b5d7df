/* Any bytes as a file of rows, with their own checksums, and with the right ones, so that what is
 * behind them is reached: the index, and rows of numbers, texts and batches. */
#define _GNU_SOURCE /* memfd_create */
#include "base/hash.h"
#include "base/memory.h"
#include "data/row_store.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 16, END = 24, ENTRY = 32, SECTIONS = 16, MOST_ROWS = 16 };

static const keel_data_spec specs[] = {
    { .n_field = 1, .field = { { .path = "x", .dtype = KEEL_INT64 } } },
    { .n_field = 1, .field = { { .path = "t", .dtype = KEEL_STRING } } },
    { .n_field = 1, .field = { { .path = "x", .dtype = KEEL_INT64 } }, .batched = true },
    { .n_field = 2,
      .field = { { .path = "x", .dtype = KEEL_FLOAT32, .shape = { 1, { KEEL_DIM_OPEN } } },
                 { .path = "t", .dtype = KEEL_STRING, .shape = { 1, { KEEL_DIM_OPEN } } } } },
};

static uint64_t get64(const unsigned char *from)
{
    uint64_t value;
    memcpy(&value, from, 8);
    return value;
}

/* Make the checksums those of the bytes. */
static void sum_up(unsigned char *file, size_t n)
{
    keel_sections sections = { 0 };
    unsigned char *end = file + n - END;
    uint64_t at = get64(end), version = 1;
    if (at < HEAD || at > n - END - SECTIONS) return;
    const uint64_t n_block = n - END - at;
    memcpy(file, "KEELROWS", 8);
    memcpy(file + 8, &version, 8);
    memcpy(end + 8, &n_block, 8);
    memcpy(end + 16, "KEELROWE", 8);
    unsigned char *block = keel_calloc((size_t)n_block, 1);
    if (!block) return;
    memcpy(block, file + at, (size_t)n_block);
    for (int twice = 0; twice < 2; twice++) { /* behind the first the sections are found */
        uint64_t sum = keel_fingerprint(block + SECTIONS, (size_t)n_block - SECTIONS);
        memcpy(block, "KEELST01", 8);
        memcpy(block + 8, &sum, 8);
        if (twice || keel_sections_decode(&sections, block, (size_t)n_block) < 0) break;
        const keel_section *rows = keel_sections_find(&sections, "rows");
        for (size_t i = 0; rows && i + ENTRY <= rows->n_bytes; i += ENTRY) {
            unsigned char *entry = block + ((const unsigned char *)rows->data - block) + i;
            const uint64_t begin = get64(entry), length = get64(entry + 8);
            if (begin > at || length > at - begin) continue;
            sum = keel_fingerprint(file + begin, (size_t)length);
            memcpy(entry + 24, &sum, 8);
        }
        keel_sections_free(&sections);
    }
    memcpy(file + at, block, (size_t)n_block);
    keel_free(block);
}

static void read_rows(const keel_row_file *f, const keel_data_spec *spec)
{
    keel_scratch scratch = { 0 };
    keel_element *e;
    size_t n;
    (void)keel_row_file_head(f, &n);
    for (int64_t i = 0; i < f->count && i < MOST_ROWS; i++) {
        if (f->n_dims == keel_row_store_dims(spec))
            for (int k = 0; k < spec->n_field; k++)
                if (keel_row_store_length(f, spec, k, i) < 0) __builtin_trap();
        if (keel_row_file_bytes(f, i) > 1 << 24)
            continue; /* it takes long, and no more than that */
        if (keel_row_store_read(&e, f, spec, i, NULL, &scratch) < 0) continue;
        for (int k = 0; k < spec->n_field; k++)
            (void)keel_fingerprint(e->field[k].data, keel_element_bytes(e, spec, k));
        keel_element_release(e);
    }
    keel_scratch_free(&scratch);
}

static void decode(const uint8_t *data, size_t size)
{
    char path[64];
    const int fd = memfd_create("fuzz", 0);
    if (fd < 0) return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (write(fd, data, size) == (ssize_t)size) {
        keel_row_file f;
        const keel_status s = keel_row_file_open(&f, path);
        for (size_t i = 0; s >= 0 && i < sizeof specs / sizeof *specs; i++)
            read_rows(&f, &specs[i]);
        keel_row_file_close(&f);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size);
    unsigned char *file = keel_calloc(size + 1, 1);
    if (file && size >= HEAD + END + SECTIONS) {
        memcpy(file, data, size);
        sum_up(file, size);
        decode(file, size);
    }
    keel_free(file);
    if (keel_memory_live() != 0) __builtin_trap();
    return 0;
}
