/* bench_records: rows per second from a TFRecord file of images and labels.
 *
 *   bench_records FILE [ROWS]   write ROWS records of an image of 28x28 bytes and a label (60,000)
 *   bench_records FILE read [THREADS]
 *                               read them for some seconds, by one thread, in order and shuffled
 *
 * bench/peers/records.py reads the same file by tf.data. Pin both to one core, and let them take
 * turns. A line of JSON for each way of reading: rows per second of the best pass, and rows per
 * second of processor time over all passes but the first, which a busy machine hardly changes, and
 * when these passes began and how many seconds they took. */
#include "base/clock.h"
#include "data/feed.h"
#include "io/crc32c.h"
#include "io/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IMAGE = 28 * 28, BATCH = 256, PASSES = 7, RECORD = 1024 };

static void must(keel_status s)
{
    if (s >= 0) return;
    fprintf(stderr, "bench_records: %s\n", keel_error());
    exit(1);
}

static unsigned char *put(unsigned char *at, const void *data, size_t n)
{
    memcpy(at, data, n);
    return at + n;
}

/* An Example with 'image' and 'label'; returns its length. */
static size_t example(unsigned char *out, const unsigned char *image, int label)
{
    unsigned char *at = out;
    at = put(at, "\x0a\xb3\x06", 3);             /* features: 819 bytes */
    at = put(at, "\x0a\xa0\x06\x0a\5image", 10); /* entry: 800 bytes, name */
    at = put(at, "\x12\x96\x06\x0a\x93\x06\x0a\x90\x06", 9);
    at = put(at, image, IMAGE);
    at = put(at, "\x0a\x0e\x0a\5label\x12\5\x1a\3\x0a\1", 15);
    *at++ = (unsigned char)label;
    return (size_t)(at - out);
}

static void write_file(const char *path, int rows)
{
    keel_new_file *f = NULL;
    unsigned char image[IMAGE], record[RECORD];
    uint32_t x = 1;
    must(keel_new_file_create(&f, path));
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < IMAGE; k++)
            image[k] = (unsigned char)((x = x * 1664525u + 1013904223u) >> 24);
        const uint64_t n = example(record + 12, image, i % 10);
        memcpy(record, &n, 8);
        uint32_t sum = keel_crc32c_masked(keel_crc32c(record, 8));
        memcpy(record + 8, &sum, 4);
        sum = keel_crc32c_masked(keel_crc32c(record + 12, n));
        memcpy(record + 12 + n, &sum, 4);
        must(keel_new_file_write(f, record, n + 16));
    }
    must(keel_new_file_commit(f));
}

static void read_file(const char *path, bool shuffle, int threads)
{
    static const char *const inputs[] = { "x=image" }, *const targets[] = { "y=label" };
    static const char *const features[] = { "image=uint8(28,28,1)" };
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    keel_dataset *d = NULL;
    keel_feed *f = NULL;
    keel_batch b;
    double fastest = 0, begun[PASSES], took[PASSES];
    o.inputs = inputs;
    o.targets = targets;
    o.features = features;
    o.n_input = o.n_target = o.n_feature = 1;
    const double begin = keel_seconds();
    must(keel_dataset_open(&d, path, &o));
    const double opened = keel_seconds() - begin;
    const keel_feed_options feed = { .real = KEEL_FLOAT32,
                                     .batch_size = BATCH,
                                     .shuffle = shuffle,
                                     .epochs = PASSES,
                                     .threads = threads };
    must(keel_feed_create(&f, d, &feed));
    unsigned long long sum = 0;
    clock_t used = 0;
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        const double from = keel_seconds();
        const clock_t used_before = clock();
        keel_status s;
        must(keel_feed_begin_epoch(f, pass));
        while ((s = keel_feed_next(f, &b)) == KEEL_OK) {
            sum += *(const unsigned char *)keel_batch_field(&b, KEEL_ROLE_INPUT, 0);
            keel_feed_release(f, &b);
        }
        must(s);
        const double seconds = keel_seconds() - from;
        begun[pass] = from;
        took[pass] = seconds;
        if (pass) used += clock() - used_before;
        if (pass && (fastest == 0 || seconds < fastest)) fastest = seconds;
    }
    printf("{\"program\": \"keel\", \"order\": \"%s\", \"threads\": %d, \"rows\": %lld, "
           "\"rows_per_s\": %.0f, "
           "\"rows_per_cpu_s\": %.0f, \"open_ms\": %.1f, \"sum\": %llu, \"passes\": [",
           shuffle ? "shuffled" : "stored", threads, (long long)keel_dataset_rows(d),
           (double)keel_dataset_rows(d) / fastest,
           (double)(PASSES - 1) * (double)keel_dataset_rows(d) * CLOCKS_PER_SEC / (double)used,
           1e3 * opened, sum);
    for (int i = 1; i < PASSES; i++) printf("%s[%.4f, %.4f]", i > 1 ? ", " : "", begun[i], took[i]);
    printf("]}\n");
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("bench_records FILE [ROWS] | FILE read\n", stderr);
        return 2;
    }
    if (argc > 2 && !strcmp(argv[2], "read")) {
        const int threads = argc > 3 ? atoi(argv[3]) : 1;
        read_file(argv[1], false, threads);
        read_file(argv[1], true, threads);
        return 0;
    }
    write_file(argv[1], argc > 2 ? atoi(argv[2]) : 60000);
    return 0;
}
