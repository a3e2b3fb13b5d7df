/* How a step is cut: every row once, sizes that differ by at most one, never more than was planned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "device/lanes.h"

/* Lanes as a machine of `cores` cores would have them, whatever this one has. */
static void shared_lanes(keel_lanes *l, int lanes, int cores)
{
    memset(l, 0, sizeof *l);
    l->n_lane = lanes;
    l->n_worker = cores;
    l->shared = true;
    for (int i = 0; i < lanes; i++) {
        l->lane[i] = (keel_lane){ .n_core = 1, .first_part = l->n_part, .id = { i } };
        for (int w = 0; w < cores; w++)
            if (i * cores < (w + 1) * lanes && w * lanes < (i + 1) * cores)
                l->part[l->n_part++] = (keel_lane_part){ .lane = i, .worker = w };
    }
    l->n_process = 1;
    l->all_lanes = lanes;
    l->all_workers = cores;
}

static void check_cuts(const keel_lanes *l, const char *what)
{
    for (int64_t most = 1; most <= 64; most++) {
        const int64_t of_worker = keel_cut_most(l, most);
        for (int64_t n = 1; n <= most; n++) {
            keel_piece piece[KEEL_LANES_MAX];
            int64_t next = 0, lane[KEEL_LANES_MAX] = { 0 }, worker[KEEL_LANES_MAX] = { 0 };
            int busy = 0;
            const int got = keel_cut(l, n, piece);
            for (int p = 0; p < l->n_part; p++) {
                if (piece[p].rows == 0) continue;
                if (piece[p].row != next)
                    fail_msg("%s: %d rows are not cut in order", what, (int)n);
                assert_int_equal(piece[p].local_row, worker[piece[p].worker]);
                next += piece[p].rows;
                lane[piece[p].lane] += piece[p].rows;
                worker[piece[p].worker] += piece[p].rows;
                busy++;
            }
            assert_int_equal(next, n);
            assert_int_equal(busy, got);
            const int64_t all = keel_lanes_unequal(l) ? l->shares_before[l->n_lane] : l->n_lane;
            for (int i = 0; i < l->n_lane; i++) {
                const int64_t due = n * keel_lanes_share_of(l, i);
                if (lane[i] != due / all && lane[i] != (due + all - 1) / all)
                    fail_msg("%s: lane %d of %d rows has %d", what, i, (int)n, (int)lane[i]);
            }
            for (int w = 0; w < l->n_worker; w++) assert_true(worker[w] <= of_worker);
        }
    }
}

static void every_row_is_cut_once_and_evenly(void **unused)
{
    (void)unused;
    static const char *const texts[] = { "cpu:0",   "cpu:0-1", "cpu:0-2",       "cpu:0-3",
                                         "cpu:0-7", "cpu:0-8", "cpu:0-1,cpu:0", "cpu" };
    keel_lanes l;
    char what[64];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (keel_lanes_parse(&l, texts[i]) < 0) fail_msg("%s", keel_error());
        check_cuts(&l, texts[i]);
    }
    for (int lanes = 1; lanes <= 17; lanes++)
        for (int cores = 1; cores <= lanes; cores++) {
            snprintf(what, sizeof what, "%d lanes on %d cores", lanes, cores);
            shared_lanes(&l, lanes, cores);
            check_cuts(&l, what);
        }
}

/* Small numbers that a seed draws. */
static int draw(uint32_t *state, int n)
{
    *state = *state * 1664525u + 1013904223u;
    return (int)((*state >> 8) % (uint32_t)n);
}

static void must_cut_alike(const keel_lanes *x, const keel_lanes *y)
{
    assert_int_equal(x->n_part, y->n_part);
    for (int64_t n = 1; n < 70; n++) {
        keel_piece a[KEEL_LANES_MAX] = { 0 }, b[KEEL_LANES_MAX] = { 0 };
        assert_int_equal(keel_cut(x, n, a), keel_cut(y, n, b));
        assert_memory_equal(a, b, sizeof a);
        assert_int_equal(keel_cut_most(x, n), keel_cut_most(y, n));
    }
}

static void shares_are_cut_exactly(void **unused)
{
    (void)unused;
    uint32_t state = 7;
    for (int k = 0; k < 300; k++) {
        const int lanes = 1 + draw(&state, 9), cores = 1 + draw(&state, lanes);
        const int most = k % 3 ? 4 : KEEL_SHARE_MAX;
        keel_lanes l, equal;
        char what[160];
        int share[9], at = snprintf(what, sizeof what, "%d cores, shares", cores);
        if (k % 2)
            shared_lanes(&l, lanes, cores);
        else { /* each lane has a core of its own, and some two */
            keel_cores all = { .n = KEEL_CORES_MAX };
            char text[160];
            int n = 0, core = 0;
            for (int i = 0; i < lanes; i++, core++) {
                n += snprintf(text + n, sizeof text - (size_t)n, "%scpu:%d", n ? "," : "", core);
                if (draw(&state, 4) == 0)
                    n += snprintf(text + n, sizeof text - (size_t)n, "+%d", ++core);
            }
            if (keel_lanes_parse_on(&l, text, &all) < 0) fail_msg("%s", keel_error());
        }
        for (int i = 0; i < lanes; i++) {
            share[i] = 1 + draw(&state, most);
            at += snprintf(what + at, sizeof what - (size_t)at, " %d", share[i]);
        }
        equal = l;
        assert_int_equal(keel_lanes_share(&l, share, lanes), KEEL_OK);
        check_cuts(&l, what);
        for (int i = 0; i < lanes; i++) share[i] = most;
        assert_int_equal(keel_lanes_share(&l, share, lanes), KEEL_OK);
        must_cut_alike(&l, &equal);
        assert_int_equal(keel_lanes_share(&l, NULL, 0), KEEL_OK);
        must_cut_alike(&l, &equal);
    }
}

/* A lane has as many shards as its share says, each of them whole. */
static void shards_are_shared_whole(void **unused)
{
    static const struct {
        int share[4], n, shards[4];
    } cases[] = { { { 3, 1 }, 2, { 12, 4 } },
                  { { 1, 1, 2 }, 3, { 4, 4, 8 } },
                  { { 5, 3, 7, 1 }, 4, { 5, 3, 7, 1 } },
                  { { 1, 1000 }, 2, { 1, 15 } } };
    (void)unused;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        keel_cores all = { .n = 4 };
        keel_lanes l;
        keel_piece piece[KEEL_LANES_MAX];
        char text[32];
        snprintf(text, sizeof text, "cpu:0-%d", cases[c].n - 1);
        assert_int_equal(keel_lanes_parse_on(&l, text, &all), KEEL_OK);
        assert_int_equal(keel_lanes_share(&l, cases[c].share, cases[c].n), KEEL_OK);
        l.shards = 16;
        for (int64_t n = 16; n <= 320; n += 16) {
            keel_cut(&l, n, piece);
            for (int i = 0; i < cases[c].n; i++)
                assert_int_equal(piece[i].rows, n / 16 * cases[c].shards[i]);
        }
    }
}

static void wrong_shares_are_refused_by_their_number(void **unused)
{
    static const struct {
        int share[3], n;
        const char *says;
    } cases[] = { { { 1, 2 }, 2, "2 shares for 3 devices: each device has one" },
                  { { 1, 0, 2 }, 3, "a share of 0 for device 2 of 3: 1 to 1000 are possible" },
                  { { 1, 2, 1001 }, 3, "a share of 1001 for device 3 of 3" } };
    const int before[] = { 0, 3, 6 }, share[] = { 1, 2, 3 };
    keel_cores all = { .n = 4 };
    keel_lanes l, kept;
    (void)unused;
    assert_int_equal(keel_lanes_parse_on(&l, "cpu:0-2", &all), KEEL_OK);
    kept = l;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        assert_int_equal(keel_lanes_share(&l, cases[c].share, cases[c].n), KEEL_EARG);
        assert_non_null(strstr(keel_error(), cases[c].says));
        assert_memory_equal(&l, &kept, sizeof l);
    }
    keel_lanes_join(&l, 0, 2, before, 6);
    assert_int_equal(keel_lanes_share(&l, share, 3), KEEL_EUNSUP);
    assert_non_null(strstr(keel_error(), "several processes"));
}

/* Process q has the rows after those of q - 1, and its pieces are these rows. */
static void processes_cut_a_step_among_all_their_lanes(void **unused)
{
    static const int counts[][4] = { { 1, 1 }, { 2, 1, 4 }, { 3, 8, 1, 5 }, { 7, 2, 2, 1 } };
    (void)unused;
    for (size_t c = 0; c < 4; c++)
        for (int cores = 1; cores < 4; cores++)
            for (int shards = 0; shards < 24; shards += 20)
                for (int64_t n = 1; n < 70; n++) {
                    int before[5] = { 0 }, count = 0;
                    int64_t next = 0;
                    while (count < 4 && counts[c][count]) count++;
                    for (int q = 0; q < count; q++) before[q + 1] = before[q] + counts[c][q];
                    for (int q = 0; q < count; q++) {
                        keel_piece piece[KEEL_LANES_MAX];
                        keel_lanes l = { 0 };
                        int64_t first, end, rows = 0;
                        shared_lanes(&l, counts[c][q], cores < counts[c][q] ? cores : counts[c][q]);
                        l.shards = shards;
                        keel_lanes_join(&l, q, count, before, 4 * cores);
                        keel_lanes_rows(&l, n, q, &first, &end);
                        assert_int_equal(first, next);
                        keel_cut(&l, n, piece);
                        for (int p = 0; p < l.n_part; p++) {
                            if (piece[p].rows == 0) continue;
                            assert_int_equal(piece[p].row, next);
                            next += piece[p].rows;
                            rows += piece[p].rows;
                        }
                        assert_int_equal(next, end);
                        assert_true(rows <= l.n_worker * keel_cut_most(&l, n));
                    }
                    assert_int_equal(next, n);
                }
}

static void cuts_are_nested(void **unused)
{
    (void)unused;
    for (int64_t n = 0; n <= 200; n++)
        for (int64_t parts = 1; parts <= 16; parts++)
            for (int64_t i = 0; i <= parts; i++)
                for (int64_t more = 2; more <= 4; more++)
                    assert_int_equal(keel_cut_first(n, parts, i),
                                     keel_cut_first(n, parts * more, i * more));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_cut_once_and_evenly),
        cmocka_unit_test(shares_are_cut_exactly),
        cmocka_unit_test(shards_are_shared_whole),
        cmocka_unit_test(wrong_shares_are_refused_by_their_number),
        cmocka_unit_test(processes_cut_a_step_among_all_their_lanes),
        cmocka_unit_test(cuts_are_nested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
