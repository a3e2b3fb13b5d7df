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

typedef enum kind { BY_MATRIX, BY_TRANSPOSE, BY_LINES } kind;
static const char *const kinds[] = { "by a matrix", "by a transpose", "line by line" };
enum { ROW = MOST + GAP };

/* What the plain loop makes of element (i, k), of lines from `first` on. */
static float sum_of(kind by, int64_t first, int64_t lines, int64_t i, int64_t k, float sum)
{
    for (int64_t j = first; j < lines; j++)
        sum += (by == BY_LINES ? a[j * ROW + i] : a[i * ROW + j - first]) *
               (by == BY_TRANSPOSE ? w[k * ROW + j] : w[j * ROW + k]);
    return sum;
}

static void try(kind by, int64_t n, int64_t lines, int64_t columns, bool starts, bool adds)
{
    const int64_t first = by != BY_LINES && lines > 2 && n % 3 ? 2 : 0;
    const keel_pairs_reals p = { .a = a,
                                 .a_row = ROW,
                                 .n = n,
                                 .lines = lines - first,
                                 .first = first,
                                 .all = first ? lines : 0,
                                 .columns = columns,
                                 .out = got,
                                 .out_row = ROW,
                                 .adds = adds,
                                 .room = room };
    const bool begins = starts && !adds && by != BY_LINES;
    fill(got, 5);
    memcpy(want, got, sizeof want);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < columns; k++) {
            float *const at = &want[i * ROW + k];
            *at = sum_of(by, first, lines, i, k, adds ? *at : begins ? start[k] : 0);
        }
    if (by == BY_TRANSPOSE)
        keel_pairs_pack_transpose(packed, w, ROW, lines, columns);
    else
        keel_pairs_pack(packed, w, ROW, lines, columns);
    if (by == BY_LINES)
        keel_pairs_multiply_lines(&p, w, ROW);
    else
        keel_pairs_multiply_reals(&p, packed, begins ? start : NULL);
    for (int i = 0; i < MOST * ROW; i++)
        if (got[i] != want[i])
            fail_msg("%s, %lld x %lld x %lld: element %d is %g, must be %g", kinds[by],
                     (long long)n, (long long)lines, (long long)columns, i, got[i], want[i]);
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
                const int64_t n = sizes[i], lines = sizes[j], columns = sizes[k];
                try(BY_MATRIX, n, lines, columns, (i + k) % 2, (i + j) % 3 == 0);
                try(BY_TRANSPOSE, n, lines, columns, (j + k) % 2, (j + k) % 3 == 0);
                try(BY_LINES, n, lines, columns, false, (i + j + k) % 2);
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
