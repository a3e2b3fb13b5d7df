/* Tests of products of float32 matrices that are rounded to bfloat16 first, by each way that the
 * processor has; test_rounded_emulated.c runs those by tiles in plain C. The numbers here are whole
 * and small, so that every product and sum is exact, and must be equal to a plain loop's, whatever
 * the sizes: odd lines leave half a pair, columns half a vector, half a tile and half a panel. */
#include "ops/x86/_rounded.h"
#include "device/cpu/cpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 150, PADDED = 160, GAP = 3 };

static float a[MOST * (MOST + GAP)], w[MOST * (MOST + GAP)], start[MOST];
static float got[MOST * (MOST + GAP)], want[MOST * (MOST + GAP)];
static uint32_t packed[PADDED * PADDED], room[2 * PADDED * PADDED];

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

static void try(const keel_rounded *way, kind by, int64_t n, int64_t lines, int64_t columns,
                bool starts, bool adds)
{
    const int64_t first = by != BY_LINES && lines > way->together && n % 3 ? way->together : 0;
    const keel_rounded_product p = { .a = a,
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
        way->pack_transpose(packed, w, ROW, lines, columns);
    else
        way->pack(packed, w, ROW, lines, columns);
    if (by == BY_LINES)
        way->multiply_lines(&p, w, ROW);
    else
        way->multiply(&p, packed, begins ? start : NULL);
    for (int i = 0; i < MOST * ROW; i++)
        if (got[i] != want[i])
            fail_msg("%s, %lld x %lld x %lld: element %d is %g, must be %g", kinds[by],
                     (long long)n, (long long)lines, (long long)columns, i, got[i], want[i]);
}

static const int64_t sizes[] = { 1, 2, 7, 16, 31, 64, 65, 127, 150 };
#define SIZES (sizeof sizes / sizeof *sizes)

static void products_equal_those_of(const keel_rounded *way)
{
    if ((int)keel_cpu_level() < way->needs) skip();
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++)
            for (size_t k = 0; k < SIZES; k++) {
                const int64_t n = sizes[i], lines = sizes[j], columns = sizes[k];
                try(way, BY_MATRIX, n, lines, columns, (i + k) % 2, (i + j) % 3 == 0);
                try(way, BY_TRANSPOSE, n, lines, columns, (j + k) % 2, (j + k) % 3 == 0);
                try(way, BY_LINES, n, lines, columns, false, (i + j + k) % 2);
            }
}

static void products_of_pairs_equal_those_of_plain_loops(void **state)
{
    (void)state;
    products_equal_those_of(&keel_rounded_pairs);
}

static void products_of_tiles_equal_those_of_plain_loops(void **state)
{
    (void)state;
    products_equal_those_of(&keel_rounded_tiles);
}

static int run_all(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_pairs_equal_those_of_plain_loops),
        cmocka_unit_test(products_of_tiles_equal_those_of_plain_loops),
    };
    fill(a, 1);
    fill(w, 2);
    for (int i = 0; i < MOST; i++) start[i] = (float)(i % 11 - 5);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
