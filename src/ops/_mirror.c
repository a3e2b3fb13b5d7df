/* See mirror.h. */
#include "ops/mirror.h"
#include "base/clones.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t bytes16 __attribute__((vector_size(16)));

/* n pixels of `size` bytes in the opposite order, in place. */
static void turn_round(char *x, int64_t n, size_t size)
{
    for (int64_t i = 0, j = n - 1; i < j; i++, j--)
        for (size_t k = 0; k < size; k++) {
            const char a = x[(size_t)i * size + k];
            x[(size_t)i * size + k] = x[(size_t)j * size + k];
            x[(size_t)j * size + k] = a;
        }
}

/* The same from one place to another. */
static inline __attribute__((always_inline)) void
copy_round(char *restrict to, const char *restrict from, int64_t n, size_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * size, from + (size_t)(n - 1 - i) * size, size);
}

/* Pixels of three bytes, five at a time: the byte behind them is written over by what follows. */
KEEL_CLONES static void copy_round_3(char *restrict to, const char *restrict from, int64_t n)
{
    enum { FEW = 5 };
    int64_t i = 0;
    for (; i + FEW < n; i += FEW) {
        bytes16 few;
        memcpy(&few, from + 3 * (n - FEW - i) - 1, sizeof few); /* and the byte before them */
        few =
            __builtin_shufflevector(few, few, 13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
        memcpy(to + 3 * i, &few, sizeof few);
    }
    copy_round(to + 3 * i, from, n - i, 3);
}

KEEL_CLONES static void copy_round_1(char *restrict to, const char *restrict from, int64_t n)
{
    copy_round(to, from, n, 1);
}

KEEL_CLONES static void copy_round_4(char *restrict to, const char *restrict from, int64_t n)
{
    copy_round(to, from, n, 4);
}

/* Of a line in place a copy is turned, unless it is long. */
void keel_mirror_line(char *to, const char *from, int64_t n, size_t size)
{
    char copy[4096];
    const size_t n_bytes = (size_t)n * size;
    if (to == from && n_bytes > sizeof copy) {
        turn_round(to, n, size);
        return;
    }
    if (to == from) from = memcpy(copy, from, n_bytes);
    switch (size) {
    case 1:
        copy_round_1(to, from, n);
        return;
    case 3:
        copy_round_3(to, from, n);
        return;
    case 4:
        copy_round_4(to, from, n);
        return;
    case 12:
        copy_round(to, from, n, 12);
        return;
    default:
        copy_round(to, from, n, size);
    }
}

static void swap_lines(char *a, char *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char first = a[i];
        a[i] = b[i];
        b[i] = first;
    }
}

void keel_mirror(char *to, const char *from, int64_t h, int64_t w, size_t size, bool across,
                 bool down)
{
    enum { AHEAD = 8 };
    const size_t line = (size_t)w * size;
    for (int64_t i = 0; i < h; i++) {
        const char *source = from + (size_t)i * line;
        if (across && to != from && i + AHEAD < h) /* lines that are read backwards */
            for (size_t k = 0; k < line; k += 64)
                __builtin_prefetch(source + AHEAD * line + k, 0, 2);
        char *at = to + (size_t)(down && to != from ? h - 1 - i : i) * line;
        if (across)
            keel_mirror_line(at, source, w, size);
        else if (at != source)
            memcpy(at, source, line);
    }
    for (int64_t i = 0, j = h - 1; down && to == from && i < j; i++, j--)
        swap_lines(to + (size_t)i * line, to + (size_t)j * line, line);
}
