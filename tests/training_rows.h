/* The rows that golden/make_training.py trains on: integers, then multiples of 1/128, so that both
 * languages have the same bits. The class lifts every fifth feature, or diagonal stripes. */
#ifndef KEEL_TESTS_TRAINING_ROWS_H
#define KEEL_TESTS_TRAINING_ROWS_H
#include <stdint.h>

enum { ROWS = 70, HELD_OUT = 53, PREDICT = 23, BATCH = 16, CLASSES = 5, SIZE_MAX_ = 12 * 12 * 3 };

typedef struct rows {
    float x[ROWS * SIZE_MAX_], y[ROWS];
} rows;

static inline uint32_t next_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static inline void make_rows(rows *r, int is_image, int n, uint32_t seed)
{
    const int size = is_image ? SIZE_MAX_ : 20;
    for (int i = 0; i < n; i++) {
        const int label = (int)(next_number(&seed) % CLASSES);
        r->y[i] = (float)label;
        for (int k = 0; k < size; k++) {
            const int place = is_image ? k / 3 % 12 + k / 36 : k;
            const int lift = place % CLASSES == label ? 48 : 0;
            r->x[i * size + k] = (float)((int)(next_number(&seed) % 256) + lift - 128) / 128;
        }
    }
}

#endif
