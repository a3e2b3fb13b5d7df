/* Weights that a GPU moves have the bits of those that the host moves, by each rule, in both types,
 * with clips that are reached and without. The GPU is the emulator's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "emulator.h"
#include "optimizers/move.h"

extern const char *keel_cuda_move(void *stream, const keel_device_move *m);

enum { ARRAYS = 2 + KEEL_MOVE_SLOTS, MOST = 3000, STEPS = 3 };

static double number(int array, int64_t i)
{
    const double x = (double)(((i + 1) * 7919 + array * 104729) % 2003) / 911 - 1.1;
    return array > 2 ? fabs(x) / 7 : x; /* mean squares */
}

static void set(void *to, keel_dtype real, int64_t i, double x)
{
    if (real == KEEL_FLOAT64)
        ((double *)to)[i] = x;
    else
        ((float *)to)[i] = (float)x;
}

static void compare(keel_rule rule, keel_dtype real, int64_t count, double clip)
{
    const int64_t bytes = count * (int64_t)keel_dtype_size(real);
    char *host[ARRAYS], *gpu[ARRAYS], *got = malloc((size_t)bytes);
    for (int k = 0; k < ARRAYS; k++) {
        host[k] = malloc((size_t)bytes);
        gpu[k] = emu_allocate(bytes, "an array");
        assert_true(host[k] && got);
        for (int64_t i = 0; i < count; i++) set(host[k], real, i, number(k, i));
        emu_copy_in(gpu[k], host[k], bytes);
    }
    keel_device_move m = { .rule = rule,
                           .real = real,
                           .count = count,
                           .number = { .rate = 0.013,
                                       .decay = 0.004,
                                       .scale = 0.37,
                                       .clip = clip,
                                       .momentum = 0.9,
                                       .alpha = 0.0021,
                                       .one_less_beta_1 = 0.1,
                                       .one_less_beta_2 = 0.001,
                                       .epsilon = 1e-7 } };
    for (int step = 0; step < STEPS; step++) {
        for (int there = 0; there < 2; there++) {
            char **at = there ? gpu : host;
            m.w = at[0];
            m.g = at[1];
            for (int k = 0; k < KEEL_MOVE_SLOTS; k++) m.slot[k] = at[2 + k];
            if (there)
                assert_null(keel_cuda_move(NULL, &m));
            else
                keel_move(&m);
        }
        assert_null(emu_report());
    }
    for (int k = 0; k < ARRAYS; k++) {
        emu_copy_out(got, gpu[k], bytes);
        assert_memory_equal(got, host[k], (size_t)bytes);
        free(host[k]);
    }
    free(got);
    emu_release_all();
}

static void bits_are_those_of_the_host(void **unused)
{
    static const int64_t counts[] = { 1, 7, 256, MOST };
    (void)unused;
    for (int rule = 0; rule < KEEL_RULES; rule++)
        for (int i = 0; i < 16; i++)
            compare((keel_rule)rule, i & 1 ? KEEL_FLOAT64 : KEEL_FLOAT32, counts[i / 4],
                    i & 2 ? 0.11 : INFINITY);
}

static void every_rule_moves_weights(void **unused)
{
    (void)unused;
    for (int rule = 0; rule < KEEL_RULES; rule++) {
        float w = 1, g = 0.5f, slot[KEEL_MOVE_SLOTS] = { 0 };
        keel_device_move m = { .rule = (keel_rule)rule,
                               .real = KEEL_FLOAT32,
                               .count = 1,
                               .w = &w,
                               .g = &g,
                               .slot = { &slot[0], &slot[1], &slot[2] },
                               .number = { .rate = 0.1,
                                           .scale = 1,
                                           .clip = INFINITY,
                                           .alpha = 0.1,
                                           .one_less_beta_1 = 0.5,
                                           .one_less_beta_2 = 0.5,
                                           .epsilon = 1e-7 } };
        keel_move(&m);
        assert_true(w < 1);
        for (int k = 0; k < KEEL_MOVE_SLOTS; k++)
            assert_true((slot[k] != 0) == (k < keel_rule_slots(m.rule)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_the_host),
        cmocka_unit_test(every_rule_moves_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
