/* The table of feed.h, cell by cell: every policy for the end of the data, with steps_per_epoch
 * absent, smaller and larger, from arrays and from generators, against a model of a few lines. */
#include "data/feed.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { EPOCHS = 3, ROWS_MAX = 4096 };

static const char *const end_name[] = { "keep", "drop", "carry", "wrap", "error" };

/* What an epoch gives: rows with their steps. */
typedef struct epoch {
    int n, steps, twice;
    int row[ROWS_MAX], step[ROWS_MAX];
} epoch;

static bool refused(int n, int batch, int asked, keel_end_of_data end)
{
    if (end == KEEL_DROP || end == KEEL_CARRY) return n < batch;
    if (end != KEEL_REFUSE || n % batch == 0) return false;
    const int pass = (n + batch - 1) / batch;
    return !(asked > 0 && asked < pass && EPOCHS * asked <= n / batch);
}

static void give(epoch *e, int row)
{
    e->step[e->n] = e->steps;
    e->row[e->n++] = row;
}

/* The model: one cursor that walks over the rows. */
static void model(epoch out[EPOCHS], int n, int batch, int asked, keel_end_of_data end)
{
    const int pass = end == KEEL_DROP ? n / batch : (n + batch - 1) / batch;
    const bool smaller = asked && asked < pass;
    int at = 0, left[64], n_left = 0;
    memset(out, 0, EPOCHS * sizeof *out);
    for (int i = 0; i < EPOCHS; i++) {
        epoch *e = &out[i];
        if (end == KEEL_CARRY && !smaller) {
            int have[ROWS_MAX], m = 0;
            for (int k = 0; k < n_left; k++) have[m++] = left[k];
            for (int k = 0; k < n; k++) have[m++] = k;
            const int whole = i == EPOCHS - 1 ? m : m / batch * batch;
            for (int k = 0; k < whole && !(asked && e->steps >= asked); k++) {
                give(e, have[k]);
                if (k % batch == batch - 1 || k == whole - 1) e->steps++;
            }
            for (n_left = 0; whole + n_left < m; n_left++) left[n_left] = have[whole + n_left];
        } else if (end == KEEL_CARRY || (end == KEEL_WRAP && asked)) {
            for (; e->steps < asked; e->steps++)
                for (int k = 0; k < batch; k++, at = (at + 1) % n) give(e, at);
        } else if (end == KEEL_WRAP) {
            for (; e->steps < pass; e->steps++)
                for (int k = 0; k < batch; k++) give(e, (e->steps * batch + k) % n);
        } else {
            if (!smaller) at = 0;
            for (const int want = smaller ? asked : pass; e->steps < want; e->steps++) {
                if (at >= n || (end == KEEL_DROP && at + batch > n)) at = 0;
                for (int k = 0; k < batch && at < n; k++) give(e, at++);
            }
        }
        if (end == KEEL_WRAP && e->n > n) e->twice = e->n - n;
    }
}

typedef struct counting {
    int n, at, yield;
    bool fail_once;
} counting;

static keel_status count_next(void *context, void *x, void *y, float *weight, int64_t capacity,
                              int64_t *rows)
{
    counting *c = context;
    if (c->fail_once && c->at > c->n / 2) {
        c->fail_once = false;
        return KEEL_EIO;
    }
    if (c->at >= c->n) return KEEL_END;
    int64_t k = 0, want = 1 + (c->at * 7 + 3) % capacity;
    for (; k < want && c->at < c->n; k++, c->at++) {
        ((float *)x)[2 * k] = ((float *)x)[2 * k + 1] = (float)c->at;
        ((int32_t *)y)[k] = c->at % 3;
        if (weight) weight[k] = (float)(c->at + 1);
    }
    *rows = k;
    return KEEL_OK;
}

static keel_status count_reset(void *context)
{
    ((counting *)context)->at = 0;
    return KEEL_OK;
}

static keel_generator generator_of(counting *c)
{
    return (keel_generator){
        .size = sizeof(keel_generator),
        .context = c,
        .x_shape = { 1, { 2 } },
        .y_dtype = KEEL_INT32,
        .has_y = true,
        .has_weight = true,
        .max_rows = 5,
        .next = count_next,
        .reset = count_reset,
    };
}

static float x_of[ROWS_MAX][2];
static int32_t y_of[ROWS_MAX];
static float w_of[ROWS_MAX];

static keel_dataset *arrays_of(int n)
{
    for (int i = 0; i < n; i++) {
        x_of[i][0] = x_of[i][1] = (float)i;
        y_of[i] = i % 3;
        w_of[i] = (float)(i + 1);
    }
    const keel_tensor x = { KEEL_FLOAT32, { 2, { n, 2 } }, x_of };
    const keel_tensor y = { KEEL_INT32, { 1, { n } }, y_of };
    const keel_tensor w = { KEEL_FLOAT32, { 1, { n } }, w_of };
    keel_dataset *d = NULL;
    assert_int_equal(keel_dataset_from_arrays(&d, &x, &y, &w), KEEL_OK);
    return d;
}

static double at(const void *p, keel_dtype real, int64_t i)
{
    return real == KEEL_FLOAT64 ? ((const double *)p)[i] : (double)((const float *)p)[i];
}

/* One feed against the model, every row of every epoch. */
static void check(const keel_dataset *d, keel_feed_options o, int n, const char *what)
{
    static epoch want[EPOCHS];
    keel_feed *f = NULL;
    const int batch = (int)o.batch_size, asked = (int)o.steps_per_epoch;
    char here[128];
    snprintf(here, sizeof here, "%s n=%d batch=%d steps=%d %s", what, n, batch, asked,
             end_name[o.end]);
    const bool known = keel_dataset_rows(d) >= 0;
    keel_status s = keel_feed_create(&f, d, &o);
    if (refused(n, batch, asked, o.end)) {
        /* where the rows are not known it must come up while they are read */
        for (uint32_t e = 0; s >= 0 && !known && e < EPOCHS; e++) {
            keel_batch b;
            s = keel_feed_begin_epoch(f, e);
            while (s >= 0 && (s = keel_feed_next(f, &b)) == KEEL_OK) keel_feed_release(f, &b);
        }
        if (s != KEEL_EDATA) fail_msg("%s: not refused", here);
        keel_feed_destroy(f);
        return;
    }
    if (s < 0) fail_msg("%s: %s", here, keel_error());
    model(want, n, batch, asked, o.end);
    int64_t counts[8];
    bool complete;
    const int n_counts = keel_feed_row_counts(f, counts, 8, &complete);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        epoch got = { 0 };
        keel_batch b;
        if (keel_feed_begin_epoch(f, e) < 0) fail_msg("%s: %s", here, keel_error());
        if (known && keel_feed_steps(f) != want[e].steps)
            fail_msg("%s: epoch %u says %d steps, not %d", here, e, (int)keel_feed_steps(f),
                     want[e].steps);
        if (known) assert_int_equal(keel_feed_rows(f), want[e].n);
        while ((s = keel_feed_next(f, &b)) == KEEL_OK) {
            bool listed = !complete;
            double sum = 0;
            assert_int_equal(b.first_row, got.n);
            assert_int_equal(b.step, got.steps);
            assert_true(b.rows >= 1 && b.rows <= keel_feed_max_rows(f));
            for (int i = 0; i < n_counts; i++) listed |= counts[i] == b.rows;
            if (!listed) fail_msg("%s: %d rows were not announced", here, (int)b.rows);
            for (int64_t i = 0; i < b.rows; i++) {
                const double row = at(b.field[0], o.real, 2 * i);
                give(&got, (int)row);
                if (at(b.field[0], o.real, 2 * i + 1) != row ||
                    ((const int32_t *)b.field[1])[i] != (int)row % 3 ||
                    at(b.field[2], o.real, i) != row + 1)
                    fail_msg("%s: row %d has a wrong x, y or weight", here, (int)row);
                sum += row + 1;
            }
            assert_true(b.weight_sum == sum);
            got.twice += (int)b.duplicates;
            got.steps++;
            keel_feed_release(f, &b);
        }
        if (s < 0) fail_msg("%s: %s", here, keel_error());
        if (got.n != want[e].n || memcmp(got.row, want[e].row, sizeof got.row) ||
            memcmp(got.step, want[e].step, sizeof got.step) || got.twice != want[e].twice) {
            for (int i = 0; i < got.n || i < want[e].n; i++)
                print_message("  %d: row %d step %d, want row %d step %d\n", i, got.row[i],
                              got.step[i], want[e].row[i], want[e].step[i]);
            fail_msg("%s: epoch %u differs (%d duplicates, want %d)", here, e, got.twice,
                     want[e].twice);
        }
        assert_int_equal(keel_feed_next(f, &b), KEEL_END);
    }
    keel_feed_destroy(f);
}

static const int sizes[] = { 1, 2, 3, 4, 5, 7, 16 }, steps[] = { 0, 1, 2, 3, 5, 9 };
#define EACH(i, list) for (size_t i = 0; i < sizeof list / sizeof *list; i++)

static void sweep(int kind, const char *what)
{
    for (int n = 1; n <= 13; n++)
        EACH(b, sizes)
            EACH(k, steps)
                for (int end = 0; end <= KEEL_REFUSE; end++) {
                    counting c = { .n = n };
                    keel_generator g = generator_of(&c);
                    keel_dataset *d = NULL;
                    keel_feed_options o = { .batch_size = sizes[b],
                                            .steps_per_epoch = steps[k],
                                            .epochs = EPOCHS,
                                            .end = (keel_end_of_data)end,
                                            .threads = kind == 0 || kind == 3 ? -1 : 2 };
                    if (kind == 2 || kind == 4) o.real = KEEL_FLOAT64;
                    if (kind < 3) {
                        d = arrays_of(n);
                    } else {
                        if (kind == 5) g.rows = n;
                        assert_int_equal(keel_dataset_from_generator(&d, &g), KEEL_OK);
                    }
                    check(d, o, n, what);
                    keel_dataset_destroy(d);
                }
}

static void arrays_follow_the_table(void **state)
{
    sweep(0, "arrays, read by the caller");
}

static void arrays_follow_the_table_with_threads(void **state)
{
    sweep(1, "arrays, two threads");
    sweep(2, "arrays as float64, two threads");
}

static void generators_follow_the_table(void **state)
{
    sweep(3, "generator, called by the caller");
    sweep(4, "generator as float64, a thread");
    sweep(5, "generator of known rows, a thread");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_follow_the_table),
        cmocka_unit_test(arrays_follow_the_table_with_threads),
        cmocka_unit_test(generators_follow_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
