/* Records of rows that a GPU folds have the bits of those that the host folds: for records that are
 * added and for moments, in both directions, whole and call by call. The GPU is the emulator's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "emulator.h"
#include "base/tree.h"
#include "device/device.h"
#include "graph/bind.h"
#include "graph/moments.h"

extern const char *keel_cuda_fold(void *stream, const keel_device_fold *f);
KEEL_USES_OP(batch_norm);

enum { PLACES = 6, SLOTS = 40 };

/* Folds `rows` rows of a step, `call` at a time. Returns the stack's first node: all rows. */
static void fold(const keel_node *n, bool moments, int64_t length, bool upward, int rows, int call,
                 const double *leaf, double *host, double *gpu)
{
    const keel_fold f = { .length = length,
                          .leaf = length,
                          .stride = length + 1,
                          .combine = moments ? keel_moments_combine : NULL,
                          .upward = upward };
    int32_t held[SLOTS] = { 0 };
    int depth = 0;
    for (int done = 0; done < rows;) {
        const int some = rows - done < call ? rows - done : call;
        const int first = upward ? done : rows - done - some;
        keel_device_fold w = { .node = n,
                               .moments = moments,
                               .length = length,
                               .places = PLACES,
                               .stack = gpu,
                               .leaf = leaf + first * length,
                               .rows = some,
                               .depth = depth,
                               .upward = upward };
        memcpy(w.held, held, (size_t)depth * sizeof *held);
        for (int i = 0; i < some; i++, depth++) {
            const int row = first + (upward ? i : some - 1 - i);
            const int closes = keel_tree_closes(rows, row, row + 1, 0, rows, upward);
            double *copy = malloc((size_t)length * sizeof *copy);
            assert_non_null(copy);
            emu_copy_out(copy, leaf + row * length, length * (int64_t)sizeof *copy);
            keel_records_push(n, &f, host, depth, closes, copy);
            free(copy);
            w.closes[i] = (uint8_t)closes;
            held[depth] = 1;
            for (int k = 0; k < closes; k++, depth--) held[depth - 1] += held[depth];
        }
        assert_null(keel_cuda_fold(NULL, &w));
        done += some;
    }
    assert_int_equal(depth, 1);
}

static void bits_are_those_of_the_host(void **unused)
{
    static const struct {
        int channels, rows, call;
    } cases[] = { { 1, 1, 1 },   { 3, 7, 7 },      { 64, 16, 5 },    { 200, 33, 33 },
                  { 5, 100, 1 }, { 40, 256, 256 }, { 33, 500, 300 }, { 2, 512, 512 } };
    (void)unused;
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        const int channels = cases[i / 4].channels, rows = cases[i / 4].rows;
        const bool moments = i % 2, upward = i / 2 % 2;
        const int64_t length = 2 * channels, node = length + 1;
        const size_t stack = (size_t)(SLOTS * node) * sizeof(double);
        const size_t leaves = (size_t)(rows * length) * sizeof(double);
        const keel_spec in = { KEEL_FLOAT32, { 2, { PLACES, channels } } };
        const keel_node n = { .op = &keel_op_batch_norm, .n_in = 1, .in = &in, .partial = length };
        double *host = calloc(1, stack), *got = malloc(stack), *leaf = malloc(leaves);
        double *gpu = emu_allocate((int64_t)stack, "the stack");
        double *there = emu_allocate((int64_t)leaves, "the records");
        assert_true(host && got && leaf);
        for (int64_t k = 0; k < rows * length; k++)
            leaf[k] = (double)((k * 7919 + 13) % 1009) / 37 - 11;
        emu_copy_in(there, leaf, (int64_t)leaves);
        emu_seed((uint32_t)i);
        fold(&n, moments, length, upward, rows, cases[i / 4].call, there, host, gpu);
        if (emu_report()) fail_msg("a fault");
        emu_copy_out(got, gpu, node * (int64_t)sizeof(double));
        assert_true(got[0] == rows);
        if (memcmp(got, host, (size_t)node * sizeof *got) != 0)
            fail_msg("%d channels, %d rows, %s, %s: other bits", channels, rows,
                     moments ? "moments" : "added", upward ? "upward" : "downward");
        free(host);
        free(got);
        free(leaf);
        emu_release_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(bits_are_those_of_the_host) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
