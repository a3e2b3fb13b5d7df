/* Gradients that travel as bfloat16: all processes have equal weights, also again and in buckets of
 * another size; sums are those of rounded gradients, to the bit; half the bytes travel; what is not
 * finite ends or skips a step as without it; and what makes no sense is refused. Processes are
 * threads here. */
#include "sent_bytes.h"
#include <math.h>
#include "tensor/bfloat16.h"
#include "train/identity.h"

/* ---- processes ------------------------------------------------------------------------------- */

/* The steps of a fit: of all rows, or the first alone. */
static keel_status fit_of(process *p, keel_strategy *s, keel_compress how, int64_t steps,
                          const keel_callback *const *callbacks)
{
    const keel_fit_options o = { KEEL_FIT_OPTIONS,        .batch_size = p->recipe->batch_size,
                                 .epochs = steps ? 1 : 2, .steps_per_epoch = steps,
                                 .no_shuffle = steps > 0, .end = p->recipe->end,
                                 .callbacks = callbacks };
    keel_status st = keel_strategy_compress(s, how);
    if (st >= 0) st = keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history);
    if (st >= 0 && !steps) st = keel_evaluate(p->outcome.model, s, p->data, &o, &p->outcome.logs);
    if (st >= 0 && !steps)
        st = keel_predict(p->outcome.model, s, p->data, &o, &p->outcome.predicted);
    return st;
}

static keel_status all_steps(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    return fit_of(p, s, KEEL_COMPRESS_BF16, 0, callbacks);
}

static keel_status a_step(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    return fit_of(p, s, KEEL_COMPRESS_BF16, 1, callbacks);
}

static keel_status a_plain_step(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    return fit_of(p, s, KEEL_COMPRESS_NONE, 1, callbacks);
}

/* Process 1 compresses, the others do not. */
static keel_status as_one_likes(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    const bool compresses = keel_strategy_rank(s) == 1;
    return fit_of(p, s, compresses ? KEEL_COMPRESS_BF16 : KEEL_COMPRESS_NONE, 1, callbacks);
}

typedef keel_status how_to_run(process *p, keel_strategy *s, const keel_callback *const *callbacks);

typedef struct job {
    int n;
    process p[THREADS_MAX];
    thread_group group;
} job;

static keel_model *own_model(const recipe *r);
static keel_dataset *own_rows(const recipe *r, int n);

/* lanes of each process; measured: buckets are as large as was measured, else many. */
static void run_job(job *j, const recipe *r, int n, how_to_run *run, int lanes, bool measured)
{
    memset(j, 0, sizeof *j);
    j->n = n;
    thread_group_begin(&j->group, n);
    for (int i = 0; i < n; i++)
        j->p[i] = (process){ .recipe = r,
                             .group = thread_group_of(&j->group, i),
                             .data = r->network ? rows_of(r) : own_rows(r, r->batch_size),
                             .outcome.model = r->network ? model_of(r) : own_model(r),
                             .run = run,
                             .lanes = lanes,
                             .workers = lanes,
                             .measured = measured,
                             .timeout = PATIENT };
    run_all(j->p, n);
}

static void end_job(job *j)
{
    for (int i = 0; i < j->n; i++) {
        assert_true(j->group.member[i].closed);
        forget(&j->p[i].outcome);
        keel_dataset_destroy(j->p[i].data);
    }
    thread_group_end(&j->group);
}

static void all_went_well(const job *j)
{
    for (int i = 0; i < j->n; i++)
        if (j->p[i].status < 0)
            fail_msg("%s, process %d of %d: %s", j->p[i].recipe->name, i, j->n, j->p[i].error);
}

/* Half of the works, and the one whose loss is scaled; of double precision none. */
static bool passed_over(size_t i)
{
    const bool scaled = recipes[i].policy && !strcmp(recipes[i].policy, "mixed_float16");
    if (recipes[i].dtype != KEEL_FLOAT32 || (SLOW && i % 3)) return true;
    return i % 2 && !scaled;
}

static void weights_are_equal_everywhere_and_again(void **unused)
{
    static const int counts[] = { 2, 3, 5 };
    (void)unused;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const recipe *r = &recipes[i];
        if (passed_over(i)) continue;
        const int n = counts[i % 3];
        job first, again;
        run_job(&first, r, n, all_steps, 1 + (int)i % 2, true);
        run_job(&again, r, n, all_steps, 1 + (int)i % 2, false);
        all_went_well(&first);
        all_went_well(&again);
        for (int k = 1; k < n; k++)
            compare(&first.p[0].outcome, &first.p[k].outcome, r, "another process");
        compare(&first.p[0].outcome, &again.p[n - 1].outcome, r, "a run with other buckets");
        end_job(&first);
        end_job(&again);
    }
}

/* ---- near float32 ---------------------------------------------------------------------------- */

/* How far weights are from those that they began with, and from others. */
static void add_distances(const keel_model *began, const keel_model *a, const keel_model *b,
                          double *moved, double *apart)
{
    for (int i = 0; i < keel_model_weight_count(began); i++) {
        const char *name = keel_model_weight_name(began, i);
        keel_tensor t[3];
        if (strstr(name, "moving_")) continue; /* statistics travel as they are */
        must(keel_model_get_weight(began, name, &t[0]));
        must(keel_model_get_weight(a, name, &t[1]));
        must(keel_model_get_weight(b, name, &t[2]));
        const float *x = t[0].data, *y = t[1].data, *z = t[2].data;
        for (int64_t k = 0; k < keel_shape_count(&t[0].shape); k++) {
            *moved += (double)(y[k] - x[k]) * (double)(y[k] - x[k]);
            *apart += (double)(z[k] - y[k]) * (double)(z[k] - y[k]);
        }
        for (int k = 0; k < 3; k++) keel_tensor_free(&t[k]);
    }
}

/* A gradient is rounded twice, each time by at most 2^-9 of it: 2^-8 together. Where those of two
 * processes cancel to half of their size, the first counts double. A step of SGD moves weights by
 * the gradient, so it shows just that. */
static void a_step_is_near_that_of_float32(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        recipe r = recipes[i];
        job plain, rounded;
        double moved = 0, apart = 0;
        if (passed_over(i) || r.network == going_on) continue;
        r.optimizer = "sgd";
        r.end = KEEL_DROP;
        keel_model *began = model_of(&r);
        run_job(&plain, &r, 3, a_plain_step, 1, true);
        run_job(&rounded, &r, 3, a_step, 1, true);
        all_went_well(&plain);
        all_went_well(&rounded);
        add_distances(began, plain.p[0].outcome.model, rounded.p[0].outcome.model, &moved, &apart);
        if (!(apart > 0 && sqrt(apart) <= ldexp(sqrt(moved), -7) + 1e-6))
            fail_msg("%s: weights moved by %g, and by %g less or more if gradients are rounded",
                     r.name, sqrt(moved), sqrt(apart));
        keel_model_destroy(began);
        end_job(&plain);
        end_job(&rounded);
    }
}

/* ---- to the bit ------------------------------------------------------------------------------ */

/* One number of each of so many inputs, and a target; the weight of an input begins with 0. So the
 * output is 0, the gradient of row r is -2 x y, and the target makes that a float. */
enum { WIDTH = 40000, ROWS_MOST = 8 };
static float own_x[ROWS_MOST * WIDTH], own_y[ROWS_MOST];

static keel_model *own_model(const recipe *r)
{
    keel_model *m;
    keel_symbol x;
    must(keel_model_create(&m, NULL, r->dtype, 3));
    must(keel_model_input(m, KEEL_DIMS(WIDTH), NULL, &x));
    x = must_call(m, "Dense",
                  KEEL_ARGS(KEEL_ARG_INT("units", 1), KEEL_ARG_BOOL("use_bias", false),
                            KEEL_ARG_STR("kernel_initializer", "zeros")),
                  x);
    must(keel_model_outputs(m, &x, 1));
    must(keel_model_compile(m, &(keel_compile){ KEEL_COMPILE, .optimizer = { r->optimizer },
                                                .loss = { { "mean_squared_error" } } }));
    if (r->policy) must(keel_model_set_dtype_policy(m, r->policy));
    return m;
}

static keel_dataset *own_rows(const recipe *r, int n)
{
    const keel_tensor x = { KEEL_FLOAT32, { 2, { n, WIDTH } }, own_x };
    const keel_tensor y = { KEEL_FLOAT32, { 2, { n, 1 } }, own_y };
    keel_dataset *d;
    (void)r;
    must(keel_dataset_from_arrays(&d, &x, &y, NULL));
    return d;
}

static void draw_rows(void)
{
    uint32_t state = 11;
    for (int i = 0; i < ROWS_MOST * WIDTH; i++) {
        state = state * 1664525u + 1013904223u;
        own_x[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    for (int i = 0; i < ROWS_MOST; i++) own_y[i] = i % 2 ? -0.5f : 1;
}

/* One row for each process, as many as a power of two: to divide by them is exact. */
static recipe of_rows(int n)
{
    return (recipe){
        "a row for each process", NULL, KEEL_FLOAT32, NULL, "SGD", KEEL_KEEP, n, 0, false
    };
}

static void sums_are_those_of_rounded_gradients(void **unused)
{
    (void)unused;
    draw_rows();
    for (int n = 2; n <= ROWS_MOST; n *= 2) {
        const recipe r = of_rows(n);
        keel_tensor w;
        job j;
        run_job(&j, &r, n, a_step, 1, n == 4);
        all_went_well(&j);
        must(keel_model_get_weight(j.p[n - 1].outcome.model, "dense/kernel", &w));
        const float *got = w.data;
        for (int i = 0; i < WIDTH; i++) {
            float sum = 0;
            for (int q = 0; q < n; q++)
                sum += keel_bf16_wide(keel_bf16_round(-2 * own_x[q * WIDTH + i] * own_y[q]));
            const float want = -0.01f * (keel_bf16_wide(keel_bf16_round(sum)) / (float)n);
            if (fabsf(got[i] - want) > 1e-6f * fabsf(want))
                fail_msg("%d processes, weight %d is %.9g, not %.9g", n, i, (double)got[i],
                         (double)want);
        }
        keel_tensor_free(&w);
        end_job(&j);
    }
}

/* ---- what is not finite ---------------------------------------------------------------------- */

static void expect_failures(const job *j, const char *what)
{
    for (int i = 0; i < j->n; i++) {
        const process *p = &j->p[i];
        keel_tensor w;
        if (p->status != KEEL_ENUMERIC || !strstr(p->error, "not finite"))
            fail_msg("%s, process %d: %s: %s", what, i, keel_status_name(p->status), p->error);
        assert_string_equal(p->error, j->p[0].error);
        must(keel_model_get_weight(p->outcome.model, "dense/kernel", &w));
        for (int k = 0; k < WIDTH; k++) assert_true(((const float *)w.data)[k] == 0);
        keel_tensor_free(&w);
    }
}

static void what_is_not_finite_fails_the_step_as_without(void **unused)
{
    static const struct {
        const char *what;
        float y0, y1, x; /* gradients are -2 x y of each process */
        bool plain_too;
    } cases[] = {
        { "infinity", -8, 0, 3e38f, true },
        { "infinity in the other process", 0, 8, 3e38f, true },
        { "infinities that make NaN", -8, 8, 3e38f, true },
        { "a sum above the largest float", -0.5f, -0.5f, 3e38f, true },
        { "a gradient that rounds to infinity", -0.5f, 0, 3.4e38f, false },
    };
    (void)unused;
    const recipe r = of_rows(2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job j;
        draw_rows();
        own_y[0] = cases[i].y0;
        own_y[1] = cases[i].y1;
        own_x[WIDTH - 7] = own_x[2 * WIDTH - 7] = cases[i].x;
        run_job(&j, &r, 2, a_step, 1, true);
        expect_failures(&j, cases[i].what);
        end_job(&j);
        run_job(&j, &r, 2, a_plain_step, 1, true);
        if (cases[i].plain_too)
            expect_failures(&j, "in float32");
        else
            all_went_well(&j);
        end_job(&j);
    }
}

static void a_scaled_loss_skips_the_same_steps(void **unused)
{
    (void)unused;
    recipe r = of_rows(2);
    r.policy = "mixed_float16";
    draw_rows();
    own_y[0] = 30000; /* times the scale of the loss it is above float16 */
    for (int k = 0; k < 2; k++) {
        job j;
        run_job(&j, &r, 2, k ? a_step : a_plain_step, 1, true);
        all_went_well(&j);
        for (int i = 0; i < 2; i++) {
            const keel_model *m = j.p[i].outcome.model;
            keel_tensor w;
            assert_true(m->compiled.loss_scale == 16384); /* half of what it began with */
            must(keel_model_get_weight(m, "dense/kernel", &w));
            for (int v = 0; v < WIDTH; v++) assert_true(((const float *)w.data)[v] == 0);
            keel_tensor_free(&w);
        }
        end_job(&j);
    }
}

/* ---- what travels ---------------------------------------------------------------------------- */

enum { BATCH = 25 };

/* Returns those of the first, and adds those of all to *all. */
static int64_t bytes_of(const recipe *r, int n, keel_compress how, int64_t epochs, int64_t *all)
{
    sender x[THREADS_MAX];
    send_together(x, n, r, &(sender){ .how = how, .batch = BATCH, .epochs = epochs });
    for (int i = 0; i < n; i++) *all += x[i].bytes;
    return x[0].bytes;
}

static keel_plan plan_of(const recipe *r, int n, keel_compress how)
{
    keel_plan p;
    keel_strategy *s;
    keel_model *m = model_of(r);
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_strategy_compress(s, how));
    must(keel_plan_processes(&p, m, s, n, ROWS, BATCH, KEEL_KEEP, NULL));
    keel_strategy_destroy(s);
    keel_model_destroy(m);
    return p;
}

static void half_the_bytes_of_gradients_travel(void **unused)
{
    (void)unused;
    const recipe *r = &recipes[7];
    assert_string_equal(r->name, "products");
    const keel_compress both[] = { KEEL_COMPRESS_NONE, KEEL_COMPRESS_BF16 };
    double of_two = 0; /* as float32 */
    for (int n = 2; n <= 4; n += 2) {
        keel_plan p[2];
        int64_t epoch[2], all[2][2] = { { 0 } };
        for (int k = 0; k < 2; k++) {
            p[k] = plan_of(r, n, both[k]);
            epoch[k] = bytes_of(r, n, both[k], 2, &all[k][1]);
            epoch[k] -= bytes_of(r, n, both[k], 1, &all[k][0]);
        }
        assert_int_equal(p[0].sent_statistics, p[1].sent_statistics);
        assert_int_equal(p[0].sent_others, p[1].sent_others);
        assert_int_equal(epoch[0] - epoch[1],
                         (p[0].sent_gradients - p[1].sent_gradients) * (ROWS / BATCH));
        /* Parts of processes are whole tiles, and differ. All together send each number to the n -
         * 1 others, and its sum. Buckets of another size begin at other weights, which lie apart.
         */
        if (n == 2) of_two = (double)p[0].sent_gradients * (ROWS / BATCH);
        if (n == 2) assert_int_equal(2 * p[1].sent_gradients, p[0].sent_gradients);
        const double saved = (double)(all[0][1] - all[0][0]) - (double)(all[1][1] - all[1][0]);
        assert_true(fabs(saved / (n - 1) / of_two - 1) < 0.01);
        for (int k = 0; k < 2; k++) keel_plan_free(&p[k]);
    }
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void expect(keel_status got, keel_status want, const char *text)
{
    if (got != want || !strstr(keel_error(), text))
        fail_msg("%s, not %s with '%s': %s", keel_status_name(got), keel_status_name(want), text,
                 keel_error());
}

static void what_makes_no_sense_is_refused_by_name(void **unused)
{
    (void)unused;
    keel_strategy *s;
    keel_plan p;
    const recipe *r = &recipes[7];
    keel_model *m = model_of(r);
    keel_dataset *d = rows_of(r);
    must(keel_strategy_create(&s, "cpu:0"));
    expect(keel_strategy_compress(s, (keel_compress)2), KEEL_EARG, "compress is 2");
    expect(keel_strategy_compress(s, (keel_compress)-1), KEEL_EARG, "compress is -1");
    must(keel_strategy_compress(s, KEEL_COMPRESS_BF16));
    expect(keel_strategy_reproducible(s, 16), KEEL_EARG, "compress bf16 and reproducible");
    expect(keel_fit(m, s, d, NULL, NULL), KEEL_EARG, "compress bf16 is for several processes");
    expect(keel_plan_processes(&p, m, s, 1, ROWS, BATCH, KEEL_KEEP, NULL), KEEL_EARG,
           "compress bf16 is for several processes");
    must(keel_strategy_compress(s, KEEL_COMPRESS_NONE));
    must(keel_strategy_reproducible(s, 16));
    expect(keel_strategy_compress(s, KEEL_COMPRESS_BF16), KEEL_EARG, "and reproducible");
    must(keel_strategy_compress(s, KEEL_COMPRESS_NONE));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

static void processes_must_agree_and_compute_in_float32(void **unused)
{
    recipe wide = recipes[7];
    const struct {
        const recipe *of;
        how_to_run *run;
        keel_status want;
        const char *text;
    } cases[] = {
        { &wide, a_step, KEEL_EUNSUP,
          "compress bf16 is for gradients of float32, and these are of" },
        { &recipes[7], as_one_likes, KEEL_EARG,
          "compress is \"bf16\", that of process 0 is \"none\"" },
    };
    (void)unused;
    wide.dtype = KEEL_FLOAT64;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job j;
        run_job(&j, cases[i].of, 3, cases[i].run, 1, true);
        for (int k = 0; k < 3; k++) {
            const process *p = &j.p[k];
            if (p->status != cases[i].want && p->status != KEEL_EREMOTE)
                fail_msg("process %d ends with %s: %s", k, keel_status_name(p->status), p->error);
            if (!strstr(p->error, cases[i].text)) fail_msg("process %d: %s", k, p->error);
        }
        end_job(&j);
    }
}

/* ---- a run that goes on ---------------------------------------------------------------------- */

static void a_checkpoint_is_used_either_way_and_that_is_said(void **unused)
{
    (void)unused;
    json_t *was, *is;
    char note[160];
    const recipe *r = &recipes[7];
    const keel_fit_options o = { KEEL_FIT_OPTIONS };
    keel_model *m = model_of(r);
    keel_dataset *d = rows_of(r);
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_identity_make(&was, m, s, d, &o));
    must(keel_identity_check(was, was, note, sizeof note));
    assert_string_equal(note, "");
    must(keel_strategy_compress(s, KEEL_COMPRESS_BF16));
    must(keel_identity_make(&is, m, s, d, &o));
    for (int k = 0; k < 2; k++) {
        must(keel_identity_check(k ? is : was, k ? was : is, note, sizeof note));
        assert_non_null(strstr(note, "gradients travelled in another type"));
        expect(keel_identity_same(k ? is : was, k ? was : is), KEEL_EARG, "its compress is");
    }
    assert_int_equal(json_object_del(was, "compress"), 0); /* as files before it were */
    must(keel_identity_check(was, is, note, sizeof note));
    assert_non_null(strstr(note, "gradients travelled in another type"));
    must(keel_strategy_compress(s, KEEL_COMPRESS_NONE));
    json_decref(is);
    must(keel_identity_make(&is, m, s, d, &o));
    must(keel_identity_check(was, is, note, sizeof note));
    assert_string_equal(note, "");
    json_decref(was);
    json_decref(is);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
}

/* oneDNN makes its caches when it is first used. That is safe with several threads, but
 * ThreadSanitizer does not see it, so the first use is by one. */
static int start_alone(void **state)
{
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = 32, .steps_per_epoch = 1 };
    keel_strategy *s;
    start(state);
    keel_model *m = model_of(&recipes[0]);
    keel_dataset *d = rows_of(&recipes[0]);
    must(keel_strategy_create(&s, "cpu:0"));
    must(keel_fit(m, s, d, &o, NULL));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_equal_everywhere_and_again),
        cmocka_unit_test(a_step_is_near_that_of_float32),
        cmocka_unit_test(sums_are_those_of_rounded_gradients),
        cmocka_unit_test(what_is_not_finite_fails_the_step_as_without),
        cmocka_unit_test(a_scaled_loss_skips_the_same_steps),
        cmocka_unit_test(half_the_bytes_of_gradients_travel),
        cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
        cmocka_unit_test(processes_must_agree_and_compute_in_float32),
        cmocka_unit_test(a_checkpoint_is_used_either_way_and_that_is_said),
    };
    return cmocka_run_group_tests(tests, start_alone, NULL);
}
