/* The rows that tests of the feed read: 103 rows of three numbers that tell their own index. */
#ifndef TESTS_FEED_ROWS_H
#define TESTS_FEED_ROWS_H
#include "base/memory.h"
#include "data/feed.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 103 };

static float x_of[N][3];
static int32_t y_of[N];

static inline keel_dataset *arrays(void)
{
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3; k++) x_of[i][k] = (float)(i * 10 + k);
        y_of[i] = i % 4;
    }
    const keel_tensor x = { KEEL_FLOAT32, { 2, { N, 3 } }, x_of };
    const keel_tensor y = { KEEL_INT32, { 1, { N } }, y_of };
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_from_arrays(&d, &x, &y, NULL), KEEL_OK);
    return d;
}

static inline keel_feed *feed_of(const keel_dataset *d, keel_feed_options o)
{
    keel_feed *f = NULL;
    if (keel_feed_create(&f, d, &o) < 0) fail_msg("%s", keel_error());
    return f;
}

static inline int row_of(const keel_batch *b, int64_t i)
{
    return (int)((const float *)b->field[0])[3 * i] / 10;
}

/* The rows of one epoch, in order. */
static inline int read_epoch(keel_feed *f, uint32_t epoch, int *rows)
{
    keel_batch b;
    keel_status s;
    int n = 0;
    if (keel_feed_begin_epoch(f, epoch) < 0) fail_msg("%s", keel_error());
    while ((s = keel_feed_next(f, &b)) == KEEL_OK) {
        for (int64_t i = 0; i < b.rows; i++) rows[n++] = row_of(&b, i);
        keel_feed_release(f, &b);
    }
    if (s < 0) fail_msg("%s", keel_error());
    return n;
}

#endif
