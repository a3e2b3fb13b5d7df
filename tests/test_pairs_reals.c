/* Products of float32 matrices by pairs of bfloat16 numbers. The numbers here are whole and small,
 * so that every product and sum is exact, and must be equal to a plain loop's, whatever the sizes:
 * odd lines leave half a pair, columns half a vector and half a panel. */
#include "ops/x86/_pairs_reals_avx512_bf16.h"
#include "device/cpu/cpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 150, GAP = 3 };

static float a[MOST * (MOST + GAP)], w[MOST * (MOST + GAP)], start[MOST];
static float got[MOST * (MOST + GAP)], want[MOST * (MOST + GAP)];
static uint32_t packed[MOST * (MOST + 16)], room[2 * MOST * (MOST + 16)];

static void fill(float *to, uint32_t seed)
{
    for (int i = 0; i < MOST * (MOST + GAP); i++) {
        seed = seed * 1664525u + 1013904223u;
        to[i] = (float)(seed >> 28) - 8;
    }
}

static void compare(const char *what, int64_t n, int64_t lines, int64_t columns)
{
    for (int i = 0; i < MOST * (MOST + GAP); i++)
        if (got[i] != want[i])
            fail_msg("%s, %lld x %lld x %lld: element %d is %g, must be %g", what, (long long)n,
                     (long long)lines, (long long)columns, i, got[i], want[i]);
}

static void try(int64_t n, int64_t lines, int64_t columns, bool turned, bool starts, bool adds)
{
    const int64_t row = MOST + GAP;
    const keel_pairs_reals p = { .a = a,
                                 .a_row = row,
                                 .n = n,
                                 .lines = lines,
                                 .columns = columns,
                                 .out = got,
                                 .out_row = row,
                                 .adds = adds,
                                 .room = room };
    fill(got, 5);
    memcpy(want, got, sizeof want);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < columns; k++) {
            float sum = adds ? want[i * row + k] : starts ? start[k] : 0;
            for (int64_t j = 0; j < lines; j++)
                sum += a[i * row + j] * (turned ? w[k * row + j] : w[j * row + k]);
            want[i * row + k] = sum;
        }
    (turned ? keel_pairs_pack_transpose : keel_pairs_pack)(packed, w, row, lines, columns);
    keel_pairs_multiply_reals(&p, packed, starts && !adds ? start : NULL);
    compare(turned ? "by a transpose" : "by a matrix", n, lines, columns);
}

static void try_lines(int64_t n, int64_t lines, int64_t columns, bool adds)
{
    const int64_t row = MOST + GAP;
    const keel_pairs_reals p = { .a = a,
                                 .a_row = row,
                                 .n = n,
                                 .lines = lines,
                                 .columns = columns,
                                 .out = got,
                                 .out_row = row,
                                 .adds = adds,
                                 .room = room };
    fill(got, 6);
    memcpy(want, got, sizeof want);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < columns; k++) {
            float sum = adds ? want[i * row + k] : 0;
            for (int64_t j = 0; j < lines; j++) sum += a[j * row + i] * w[j * row + k];
            want[i * row + k] = sum;
        }
    keel_pairs_multiply_lines(&p, w, row);
    compare("line by line", n, lines, columns);
}

static const int64_t sizes[] = { 1, 2, 7, 16, 31, 64, 65, 127, 150 };
#define SIZES (sizeof sizes / sizeof *sizes)

static void products_equal_those_of_plain_loops(void **state)
{
    (void)state;
    if (keel_cpu_level() < KEEL_CPU_AVX512_BF16) skip();
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++)
            for (size_t k = 0; k < SIZES; k++) {
                try(sizes[i], sizes[j], sizes[k], false, (i + k) % 2, (i + j) % 3 == 0);
                try(sizes[i], sizes[j], sizes[k], true, (j + k) % 2, (j + k) % 3 == 0);
                try_lines(sizes[i], sizes[j], sizes[k], (i + j + k) % 2);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(products_equal_those_of_plain_loops) };
    fill(a, 1);
    fill(w, 2);
    for (int i = 0; i < MOST; i++) start[i] = (float)(i % 11 - 5);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
