/* Opens a file of records and reads some of its rows, for fuzz targets. */
#ifndef TESTS_FUZZ_RECORD_ROWS_H
#define TESTS_FUZZ_RECORD_ROWS_H
#include "base/memory.h"
#include "data/feed.h"
#include "keel/pipeline.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A file with these bytes and this ending; its path is good until the next call. */
static inline const char *rows_file(const void *data, size_t size, const char *ending)
{
    static char path[512];
    const char *folder = getenv("KEEL_TEST_TMP");
    snprintf(path, sizeof path, "%s/fuzz-%ld%s", folder ? folder : "/tmp", (long)getpid(), ending);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) abort();
    return path;
}

/* As keel data --verify: rows fail one by one. */
static inline void rows_read_on(const char *path, const keel_dataset_options *options)
{
    keel_dataset *d = NULL;
    keel_reader *r = NULL;
    const keel_tensor *field;
    const keel_reader_options alone = { .size = sizeof alone, .threads = -1 };
    keel_dataset_options o = *options;
    o.unchecked = true;
    if (keel_dataset_open(&d, path, &o) >= 0 && keel_reader_create(&r, d, &alone) >= 0)
        for (int i = 0; i < 32; i++) {
            const keel_status s = keel_reader_next(r, &field);
            if (s == KEEL_END) break;
            if (s < 0) keel_reader_pass(r);
        }
    keel_reader_destroy(r);
    keel_dataset_destroy(d);
}

static inline void rows_read(const char *path, const keel_dataset_options *o)
{
    keel_dataset *d = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    if (keel_dataset_open(&d, path, o) >= 0) {
        const keel_feed_options feed = {
            .real = KEEL_FLOAT32, .batch_size = 4, .threads = -1, .end = KEEL_KEEP
        };
        if (keel_feed_create(&f, d, &feed) >= 0 && keel_feed_begin_epoch(f, 0) >= 0)
            for (int i = 0; i < 16 && keel_feed_next(f, &b) == KEEL_OK; i++)
                keel_feed_release(f, &b);
        keel_feed_destroy(f);
    }
    keel_dataset_destroy(d);
    rows_read_on(path, o);
    unlink(path);
    if (keel_memory_live() != 0) __builtin_trap();
}

#endif
