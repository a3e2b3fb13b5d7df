/* TFRecord files and tar archives for tests, written byte by byte, so that they can be wrong. */
#ifndef TESTS_RECORD_FILES_H
#define TESTS_RECORD_FILES_H
#include "io/crc32c.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct record_bytes {
    unsigned char *at;
    size_t n, room;
} record_bytes;

static inline void record_add(record_bytes *b, const void *data, size_t n)
{
    while (b->n + n > b->room) b->at = realloc(b->at, b->room = 2 * b->room + 4096);
    if (!b->at) abort();
    if (n) memcpy(b->at + b->n, data, n);
    b->n += n;
}

static inline void record_le(record_bytes *b, uint64_t value, int n)
{
    for (int i = 0; i < n; i++, value >>= 8)
        record_add(b, &(unsigned char){ (unsigned char)value }, 1);
}

/* A TFRecord record. */
static inline void record_put(record_bytes *b, const void *data, size_t n)
{
    record_le(b, n, 8);
    record_le(b, keel_crc32c_masked(keel_crc32c(b->at + b->n - 8, 8)), 4);
    record_add(b, data, n);
    record_le(b, keel_crc32c_masked(keel_crc32c(data, n)), 4);
}

/* A field of a protocol buffer with bytes. */
static inline void record_field(record_bytes *b, int number, const void *data, size_t n)
{
    size_t left = n;
    record_le(b, (uint64_t)number << 3 | 2, 1);
    for (; left >= 128; left >>= 7) record_le(b, (left & 127) | 128, 1);
    record_le(b, left, 1);
    record_add(b, data, n);
}

/* An entry of an Example's features; kind: 1 bytes, 2 floats, 3 integers; `list`: the values, as
 * they are stored. */
static inline void record_entry(record_bytes *b, const char *name, int kind, const void *list,
                                size_t n)
{
    record_bytes feature = { 0 }, entry = { 0 };
    record_field(&feature, kind, list, n);
    record_field(&entry, 1, name, strlen(name));
    record_field(&entry, 2, feature.at, feature.n);
    record_field(b, 1, entry.at, entry.n);
    free(feature.at);
    free(entry.at);
}

/* Features as an Example. Takes the features. */
static inline record_bytes record_example(record_bytes features)
{
    record_bytes out = { 0 };
    record_field(&out, 1, features.at, features.n);
    free(features.at);
    return out;
}

static inline void tar_sum(unsigned char h[512])
{
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += h[i];
    snprintf((char *)h + 148, 8, "%06o", sum & 0777777);
}

/* A member of a tar archive. */
static inline void tar_put(record_bytes *b, const char *name, char type, const void *data, size_t n)
{
    unsigned char h[512] = { 0 };
    snprintf((char *)h, 100, "%s", name);
    snprintf((char *)h + 124, 12, "%011o", (unsigned)n);
    memcpy(h + 257, "ustar\00000", 8);
    h[156] = (unsigned char)type;
    tar_sum(h);
    record_add(b, h, 512);
    record_add(b, data, n);
    while (b->n % 512) record_le(b, 0, 1);
}

static inline void tar_end(record_bytes *b)
{
    static const unsigned char zeros[1024];
    record_add(b, zeros, sizeof zeros);
}

#endif
