/* Chance: Random123's known answers, and what a permutation must be. */
#include "base/memory.h"
#include "base/philox.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void philox_gives_the_known_answers(void **state)
{
    /* philox4x32-10 of Random123's kat_vectors; the counter taken apart into its fields */
    const struct {
        keel_chance c;
        uint64_t row;
        uint32_t block, want[4];
    } kat[] = {
        { { 0, 0, 0 }, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { UINT64_MAX, UINT32_MAX, UINT16_MAX },
          UINT64_C(0xFFFFFFFFFFFF),
          UINT32_MAX,
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { UINT64_C(0x299f31d0a4093822), 0x03707344, 0x1319 },
          UINT64_C(0x8a2e85a308d3),
          0x243f6a88,
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof kat / sizeof *kat; i++) {
        uint32_t out[4];
        keel_philox(out, &kat[i].c, kat[i].row, kat[i].block);
        assert_memory_equal(out, kat[i].want, sizeof out);
    }
}

static void uniform_numbers_are_below_one_even_as_float(void **state)
{
    assert_true(keel_uniform(0) == 0);
    assert_true((float)keel_uniform(UINT32_MAX) < 1.0f);
    assert_true((double)(float)keel_uniform(0x12345678) == keel_uniform(0x12345678));
}

static void a_permutation_meets_every_index_once(void **state)
{
    enum { MOST = 70000 };
    unsigned char *seen = keel_calloc(MOST, 1);
    for (uint64_t n = 0; n <= MOST; n += n < 2000 ? 1 : 17000) {
        keel_permutation p;
        keel_permutation_init(&p, n, &(keel_chance){ n * 77 + 1, 2, KEEL_STREAM_SHUFFLE });
        memset(seen, 0, MOST);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t at = keel_permutation_at(&p, i);
            assert_true(at < n);
            assert_false(seen[at]++);
        }
    }
    keel_free(seen);
}

static void a_large_permutation_stays_inside_without_meeting_itself(void **state)
{
    enum { SOME = 1000 };
    const uint64_t sizes[] = { UINT64_C(1) << 32, (UINT64_C(1) << 33) + 1, UINT64_C(1) << 48,
                               UINT64_MAX };
    uint64_t at[SOME];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        keel_permutation p;
        keel_permutation_init(&p, sizes[k], &(keel_chance){ 5, 0, KEEL_STREAM_SHUFFLE });
        int upper = 0;
        for (int i = 0; i < SOME; i++) {
            at[i] = keel_permutation_at(&p, i < SOME / 2 ? (uint64_t)i
                                                         : sizes[k] - (uint64_t)(SOME - i));
            assert_true(at[i] < sizes[k]);
            upper += at[i] >= sizes[k] / 2;
            for (int j = 0; j < i; j++) assert_true(at[j] != at[i]);
        }
        assert_in_range(upper, 420, 580); /* half of 1000, five standard deviations */
    }
}

/* Chi square of which of the n! orders came out, over many seeds. */
static double orders_chi_square(int n, int n_orders, int seeds)
{
    int count[120] = { 0 };
    for (int s = 0; s < seeds; s++) {
        keel_permutation p;
        keel_permutation_init(&p, (uint64_t)n,
                              &(keel_chance){ 9, (uint32_t)s, KEEL_STREAM_SHUFFLE });
        int rank = 0;
        uint64_t at[8];
        for (int i = 0; i < n; i++) at[i] = keel_permutation_at(&p, (uint64_t)i);
        for (int i = 0; i < n; i++) {
            int smaller = 0;
            for (int j = i + 1; j < n; j++) smaller += at[j] < at[i];
            rank = rank * (n - i) + smaller;
        }
        count[rank]++;
    }
    double chi = 0;
    const double expected = (double)seeds / n_orders;
    for (int i = 0; i < n_orders; i++)
        chi += (count[i] - expected) * (count[i] - expected) / expected;
    return chi;
}

static void every_order_of_few_is_equally_likely(void **state)
{
    /* the 0.9999 quantiles of chi square with n! - 1 degrees of freedom */
    assert_true(orders_chi_square(2, 2, 20000) < 15.1);
    assert_true(orders_chi_square(3, 6, 20000) < 25.7);
    assert_true(orders_chi_square(4, 24, 20000) < 56.0);
    assert_true(orders_chi_square(5, 120, 20000) < 185.0);
}

static void a_position_goes_anywhere(void **state)
{
    enum { N = 1000, BINS = 20, SEEDS = 4000 };
    const uint64_t positions[] = { 0, 1, 499, 999 };
    for (size_t k = 0; k < 4; k++) {
        int count[BINS] = { 0 };
        for (int s = 0; s < SEEDS; s++) {
            keel_permutation p;
            keel_permutation_init(&p, N, &(keel_chance){ (uint64_t)s, 0, KEEL_STREAM_SHUFFLE });
            count[keel_permutation_at(&p, positions[k]) * BINS / N]++;
        }
        double chi = 0;
        for (int i = 0; i < BINS; i++)
            chi += (count[i] - SEEDS / BINS) * (double)(count[i] - SEEDS / BINS) /
                   (SEEDS / (double)BINS);
        assert_true(chi < 50.8); /* 19 degrees of freedom, 0.9999 */
    }
}

static void epochs_and_seeds_have_their_own_order(void **state)
{
    const keel_chance c[] = {
        { 1, 0, 0xFFFF }, { 1, 1, 0xFFFF }, { 2, 0, 0xFFFF }, { 1, 0, 0xFFFE }
    };
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++) {
            keel_permutation p, q;
            int same = 0;
            keel_permutation_init(&p, 1000, &c[a]);
            keel_permutation_init(&q, 1000, &c[b]);
            for (uint64_t i = 0; i < 1000; i++)
                same += keel_permutation_at(&p, i) == keel_permutation_at(&q, i);
            assert_true(a == b ? same == 1000 : same < 10);
        }
}

/* Files remember a position in an order: the order must be the same in every release. */
static void the_order_never_changes(void **state)
{
    const uint64_t want[10] = { 7, 5, 1, 4, 0, 3, 6, 2, 8, 9 };
    keel_permutation p;
    keel_permutation_init(&p, 10, &(keel_chance){ 1, 2, 3 });
    for (uint64_t i = 0; i < 10; i++) assert_int_equal(keel_permutation_at(&p, i), want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(uniform_numbers_are_below_one_even_as_float),
        cmocka_unit_test(a_permutation_meets_every_index_once),
        cmocka_unit_test(a_large_permutation_stays_inside_without_meeting_itself),
        cmocka_unit_test(every_order_of_few_is_equally_likely),
        cmocka_unit_test(a_position_goes_anywhere),
        cmocka_unit_test(epochs_and_seeds_have_their_own_order),
        cmocka_unit_test(the_order_never_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
