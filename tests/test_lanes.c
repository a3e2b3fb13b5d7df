/* How a step is cut: every row once, sizes that differ by at most one, never more than was planned;
 * and what a text of devices means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <math.h>
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
        l->lane[i] = (keel_lane){ .n_core = 1, .first_id = i, .first_part = l->n_part };
        l->id[l->n_id++] = i;
        for (int w = 0; w < cores; w++)
            if (i * cores < (w + 1) * lanes && w * lanes < (i + 1) * cores)
                l->part[l->n_part++] = (keel_lane_part){ .lane = i, .worker = w };
    }
    l->n_process = 1;
    l->all_lanes = l->all_units = lanes;
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
        assert_int_equal(keel_lanes_share(&l, share, lanes, NULL), KEEL_OK);
        check_cuts(&l, what);
        for (int i = 0; i < lanes; i++) share[i] = most;
        assert_int_equal(keel_lanes_share(&l, share, lanes, NULL), KEEL_OK);
        must_cut_alike(&l, &equal);
        assert_int_equal(keel_lanes_share(&l, NULL, 0, NULL), KEEL_OK);
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
        assert_int_equal(keel_lanes_share(&l, cases[c].share, cases[c].n, NULL), KEEL_OK);
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
    keel_cores all = { .n = 4 };
    keel_lanes l, kept;
    (void)unused;
    assert_int_equal(keel_lanes_parse_on(&l, "cpu:0-2", &all), KEEL_OK);
    kept = l;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        assert_int_equal(keel_lanes_share(&l, cases[c].share, cases[c].n, NULL), KEEL_EARG);
        assert_non_null(strstr(keel_error(), cases[c].says));
        assert_memory_equal(&l, &kept, sizeof l);
    }
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

/* The same where lanes have shares: process q has its part, and so has each of its lanes. */
static void processes_cut_a_step_by_the_shares_of_all(void **unused)
{
    static const int share[][3] = { { 3, 1, 2 }, { 1, 1, 1 }, { 1000, 1, 7 }, { 2, 5, 4 } };
    enum { COUNT = 4, MOST = 3 };
    (void)unused;
    for (int cores = 1; cores <= MOST; cores++)
        for (int shards = 0; shards < 24; shards += 20)
            for (int64_t n = 1; n < 70; n++) {
                int lanes_before[COUNT + 1] = { 0 }, units_before[COUNT + 1] = { 0 };
                int64_t next = 0;
                for (int q = 0; q < COUNT; q++) {
                    lanes_before[q + 1] = lanes_before[q] + 1 + q % MOST;
                    units_before[q + 1] = units_before[q];
                    for (int i = 0; i < 1 + q % MOST; i++) units_before[q + 1] += share[q][i];
                }
                for (int q = 0; q < COUNT; q++) {
                    keel_piece piece[KEEL_LANES_MAX];
                    keel_lanes l = { 0 };
                    const int lanes = 1 + q % MOST;
                    int64_t first, end;
                    shared_lanes(&l, lanes, cores < lanes ? cores : lanes);
                    l.shards = shards;
                    keel_lanes_join(&l, q, COUNT, lanes_before, COUNT * cores);
                    assert_int_equal(keel_lanes_share(&l, share[q], lanes, units_before), KEEL_OK);
                    keel_lanes_rows(&l, n, q, &first, &end);
                    assert_int_equal(first, next);
                    int64_t rows[MOST] = { 0 }, of_worker[MOST] = { 0 };
                    keel_cut(&l, n, piece);
                    for (int p = 0; p < l.n_part; p++) {
                        if (piece[p].rows == 0) continue;
                        assert_int_equal(piece[p].row, next);
                        next += piece[p].rows;
                        rows[piece[p].lane] += piece[p].rows;
                        of_worker[piece[p].worker] += piece[p].rows;
                    }
                    assert_int_equal(next, end);
                    const double all = units_before[COUNT];
                    for (int i = 0; i < lanes && !shards; i++)
                        assert_true(fabs((double)rows[i] - (double)n * share[q][i] / all) < 1);
                    for (int w = 0; w < l.n_worker; w++)
                        assert_true(of_worker[w] <= keel_cut_most(&l, n));
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

/* ---- texts ----------------------------------------------------------------------------------- */

/* Each lane with the operating system's numbers of its cores, as "cpu:0+1@10,11 cpu:2@12". */
static const char *described(const keel_lanes *l)
{
    static char text[4096];
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < l->n_lane; i++) {
        const int end = i + 1 < l->n_lane ? l->lane[i + 1].first_part : l->n_part;
        char name[64];
        keel_lane_name(name, l, i);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", name);
        for (int p = l->lane[i].first_part; p < end; p++) {
            assert_int_equal(l->part[p].lane, i);
            at +=
                (size_t)snprintf(text + at, sizeof text - at, "%c%d",
                                 p > l->lane[i].first_part ? ',' : '@', l->core[l->part[p].worker]);
        }
    }
    assert_int_equal(l->n_process, 1);
    assert_int_equal(l->all_lanes, l->n_lane);
    assert_int_equal(l->all_workers, l->n_worker);
    return text;
}

/* Cores that the operating system counts from 10 on. */
static keel_cores some_cores(int n)
{
    keel_cores c = { .n = n };
    for (int i = 0; i < n; i++) c.os[i] = 10 + i;
    return c;
}

static void a_text_names_cores_in_its_order(void **unused)
{
    static const struct {
        const char *text;
        int cores;
        bool shared;
        const char *want;
    } cases[] = {
        { NULL, 3, false, "cpu:0@10 cpu:1@11 cpu:2@12" },
        { "", 1, false, "cpu:0@10" },
        { "cpu", 2, false, "cpu:0@10 cpu:1@11" },
        { "cpu:3", 4, false, "cpu:3@13" },
        { "cpu:2,cpu:0", 4, false, "cpu:2@12 cpu:0@10" },
        { "cpu:1,3", 4, false, "cpu:1@11 cpu:3@13" },
        { "cpu:1+3,cpu:2", 4, false, "cpu:1+3@11,13 cpu:2@12" },
        { "cpu:0-1,cpu:0", 2, false, "cpu:0@10 cpu:1@11 cpu:0@10" },
        { "cpu:7+9", 4, false, "cpu:7+9@10,11" },
        { "cpu:4", 4, true, "cpu:4@10" },
        { "cpu:99999999", 1, true, "cpu:99999999@10" },
        { "cpu:0-3", 2, true, "cpu:0@10 cpu:1@10 cpu:2@11 cpu:3@11" },
        { "cpu:0-2", 2, true, "cpu:0@10 cpu:1@10,11 cpu:2@11" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_cores cores = some_cores(cases[i].cores);
        keel_lanes l;
        if (keel_lanes_parse_on(&l, cases[i].text, &cores) < 0) fail_msg("%s", keel_error());
        assert_string_equal(described(&l), cases[i].want);
        assert_int_equal(l.shared, cases[i].shared);
    }
}

static void other_texts_are_refused_by_what_is_wrong(void **unused)
{
    static const struct {
        const char *text;
        keel_status status;
        const char *says;
    } cases[] = {
        { "cpu:", KEEL_EARG, "a device number is missing" },
        { "cpu:0,", KEEL_EARG, "a device number is missing" },
        { "cpu:0-", KEEL_EARG, "missing after '-'" },
        { "cpu:1-0", KEEL_EARG, "must go up" },
        { "cpu:0+", KEEL_EARG, "missing after '+'" },
        { "cpu:0+0", KEEL_EARG, "named twice" },
        { "cpu:0+1+0", KEEL_EARG, "named twice" },
        { "cpu:100000000", KEEL_EARG, "above 99999999" },
        { "cpu:0+18446744073709551616", KEEL_EARG, "above 99999999" },
        { "cpu:0-256", KEEL_EARG, "more than 256 devices" },
        { "cpu:0-99999999999", KEEL_EARG, "more than 256 devices" },
        { "cpu:0;1", KEEL_EARG, "separated by commas" },
        { "cpu:0+1+2", KEEL_EARG, "more cores than this machine" },
        { "cpu:0,cuda:0", KEEL_EARG, "name GPUs before cores" },
        { "tpu:0", KEEL_EDEVICE, "kind 'tpu'" },
        { "gpu:0", KEEL_EDEVICE, "GPUs of NVIDIA are cuda:0" },
    };
    const keel_cores cores = some_cores(2);
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_lanes l = { .n_lane = 77 };
        assert_int_equal(keel_lanes_parse_on(&l, cases[i].text, &cores), cases[i].status);
        if (!strstr(keel_error(), cases[i].says)) fail_msg("%s", keel_error());
        assert_int_equal(l.n_lane, 77);
    }
}

/* Of 256 devices or parts none is refused, of 257 all are. */
static void as_many_devices_are_possible_as_the_text_says(void **unused)
{
    static const struct {
        const char *item;
        int times, cores;
        const char *says; /* NULL: it is possible */
    } cases[] = {
        { ",0", 256, 1024, NULL },
        { ",0", 257, 1024, "more than 256 devices" },
        { ",0-255", 1, 1, NULL },
        { ",0+1", 128, 2, NULL },
        { ",0-255", 1, 2, NULL },
        { ",0-253", 1, 3, NULL },
        { ",0-254", 1, 3, NULL },
        { ",0-255", 1, 3,
          "this machine has 3 cores for 256 devices, whose rows they would compute in more than "
          "256 parts: name 254 devices at most" },
        { ",0+1", 129, 2, "more than 256 cores in all devices" },
        { "+%d", 64, 1024, NULL },
        { "+%d", 65, 1024, "more than 64 cores in one device" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const keel_cores cores = some_cores(cases[i].cores);
        char text[2048] = "cpu:";
        size_t at = 3; /* the first separator becomes the colon */
        for (int k = 0; k < cases[i].times; k++) {
            at += (size_t)snprintf(text + at, sizeof text - at, "%c", cases[i].item[0]);
            if (cases[i].item[1] == '%')
                at += (size_t)snprintf(text + at, sizeof text - at, "%d", k);
            else
                at += (size_t)snprintf(text + at, sizeof text - at, "%s", cases[i].item + 1);
        }
        text[3] = ':';
        keel_lanes l;
        const keel_status s = keel_lanes_parse_on(&l, text, &cores);
        if (!cases[i].says && s < 0) fail_msg("%s", keel_error());
        if (cases[i].says && (s != KEEL_EARG || !strstr(keel_error(), cases[i].says)))
            fail_msg("%d of '%s': %s", cases[i].times, cases[i].item, keel_error());
    }
}

/* Threads that drive devices leave the cores that compute to themselves, as long as there are
 * others. */
static void devices_take_cores_that_compute_nothing(void **unused)
{
    static const struct {
        int n;
        const char *of_cores, *want; /* or a part of the error */
    } cases[] = {
        { 2, "cpu:0-1", "gpu@12 gpu@13 cpu:0@10 cpu:1@11" },
        { 2, "cpu:0+1", "gpu@12 gpu@13 cpu:0+1@10,11" },
        { 1, "cpu:3", "gpu@10 cpu:3@13" },
        { 5, "cpu:3", "gpu@10 gpu@11 gpu@12 gpu@10 gpu@11 cpu:3@13" },
        { 2, "cpu", "gpu@10 gpu@11 cpu:0@10 cpu:1@11 cpu:2@12 cpu:3@13" },
        { 1, "cpu:0-4", "5 devices of cores beside GPUs, but this machine has 4 cores" },
        { 255, "cpu:0", NULL },
        { 254, "cpu:0+1", NULL },
        { 256, "cpu:0", "more than 256 devices" },
        { 255, "cpu:0+1", "255 GPUs and 2 cores: 256 are possible together" },
        { 257, "cpu:0", "257 devices; 1 to 256 are possible" },
        { 0, "cpu:0", "0 devices; 1 to 256 are possible" },
    };
    const keel_cores cores = some_cores(4);
    keel_device gpu = { .name = "gpu" };
    keel_device *device[257];
    (void)unused;
    for (int i = 0; i < 257; i++) device[i] = &gpu;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        keel_lanes l, of_cores;
        assert_int_equal(keel_lanes_parse_on(&of_cores, cases[i].of_cores, &cores), KEEL_OK);
        const keel_status s = keel_lanes_beside(&l, device, cases[i].n, &of_cores, &cores);
        if (s < 0 && (!cases[i].want || !strstr(keel_error(), cases[i].want)))
            fail_msg("%s", keel_error());
        if (s < 0) continue;
        if (cases[i].want) assert_string_equal(described(&l), cases[i].want);
        assert_int_equal(l.n_lane, cases[i].n + of_cores.n_lane);
        assert_ptr_equal(keel_lanes_device(&l), &gpu);
        assert_null(keel_lanes_device(&of_cores));
        for (int w = 0; w < l.n_worker; w++)
            assert_ptr_equal(l.device[w], w < cases[i].n ? &gpu : NULL);
    }
}

static void neighbouring_pieces_of_a_worker_are_one_run(void **unused)
{
    static const keel_piece piece[] = {
        { .worker = 2, .row = 0, .rows = 0 }, { .worker = 0, .row = 0, .rows = 3 },
        { .worker = 0, .row = 3, .rows = 0 }, { .worker = 0, .row = 3, .rows = 2 },
        { .worker = 1, .row = 5, .rows = 0 }, { .worker = 3, .row = 5, .rows = 4 }
    };
    keel_piece run[6];
    (void)unused;
    assert_int_equal(keel_pieces_join(piece, 6, run), 2);
    assert_int_equal(run[0].worker, 0);
    assert_int_equal(run[0].row, 0);
    assert_int_equal(run[0].rows, 5);
    assert_int_equal(run[1].worker, 3);
    assert_int_equal(run[1].row, 5);
    assert_int_equal(run[1].rows, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_cut_once_and_evenly),
        cmocka_unit_test(shares_are_cut_exactly),
        cmocka_unit_test(shards_are_shared_whole),
        cmocka_unit_test(wrong_shares_are_refused_by_their_number),
        cmocka_unit_test(processes_cut_a_step_among_all_their_lanes),
        cmocka_unit_test(processes_cut_a_step_by_the_shares_of_all),
        cmocka_unit_test(cuts_are_nested),
        cmocka_unit_test(a_text_names_cores_in_its_order),
        cmocka_unit_test(other_texts_are_refused_by_what_is_wrong),
        cmocka_unit_test(as_many_devices_are_possible_as_the_text_says),
        cmocka_unit_test(devices_take_cores_that_compute_nothing),
        cmocka_unit_test(neighbouring_pieces_of_a_worker_are_one_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
