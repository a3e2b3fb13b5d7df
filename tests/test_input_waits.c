/* Steps that wait for rows: which stage is blamed, how much work each stage had, whether what is
 * said of remedies comes true, and how the input finds its threads. Stages sleep, so that what they
 * take does not depend on how busy the machine is; where it still does, it is tried again. The
 * tuner is shown times that a formula makes. */
#define _GNU_SOURCE /* nanosleep */
#include "must.h"
#include "keel/keel.h"
#include "base/clock.h"
#include "data/feed_impl.h"
#include "train/input.h"
#include "train/input_advice.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N = 48, BATCH = 4, TRIES = 8, SETTLED = 20, LOOKS_AGAIN = 70 };

static void nap(int us)
{
    if (us) nanosleep(&(struct timespec){ .tv_nsec = us * 1000L }, NULL);
}

/* ---- stages of known cost ---------------------------------------------------------------------
 */

/* What a function that sleeps has really slept; it may be called by several threads. */
typedef struct sleeper {
    int us, every; /* every > 0: one row of so many sleeps */
    _Atomic int64_t ns, rows;
} sleeper;

static void sleep_noted(sleeper *s)
{
    const int64_t begin = keel_clock_ns();
    const int64_t row = s->rows++;
    if (!s->every || row % s->every == s->every - 1) nap(s->us);
    s->ns += keel_clock_ns() - begin;
}

static keel_status map_call(void *context, const keel_tensor *in, keel_tensor *out,
                            const keel_element_place *at)
{
    (void)at;
    memcpy(out->data, in->data,
           sizeof(float) * (size_t)(in->shape.rank == 2 ? in->shape.dim[0] : 1));
    sleep_noted(context);
    return KEEL_OK;
}

static keel_status filter_call(void *context, const keel_tensor *in, bool *keep,
                               const keel_element_place *at)
{
    (void)in, (void)at;
    sleep_noted(context);
    *keep = true;
    return KEEL_OK;
}

static keel_dataset *numbers(void)
{
    static float x[N], y[N];
    keel_dataset *d;
    for (int i = 0; i < N; i++) x[i] = (float)(i % 7) / 100;
    must(keel_dataset_from_arrays(&d, &(keel_tensor){ KEEL_FLOAT32, { 2, { N, 1 } }, x },
                                  &(keel_tensor){ KEEL_FLOAT32, { 1, { N } }, y }, NULL));
    return d;
}

static keel_dataset *only_x(void)
{
    static float x[N];
    keel_dataset *d;
    must(keel_dataset_from_arrays(&d, &(keel_tensor){ KEEL_FLOAT32, { 2, { N, 1 } }, x }, NULL,
                                  NULL));
    return d;
}

static keel_dataset *mapped(keel_dataset *d, sleeper *s, const char *name)
{
    const keel_map m = { .size = sizeof m, .call = map_call, .context = s, .name = name };
    keel_dataset *out;
    must(keel_dataset_map(&out, d, &m));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *filtered(keel_dataset *d, sleeper *s, const char *name)
{
    const keel_filter f = { .size = sizeof f, .call = filter_call, .context = s, .name = name };
    keel_dataset *out;
    must(keel_dataset_filter(&out, d, &f));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *put(keel_dataset *d, const char *stage, const keel_arg *args)
{
    keel_dataset *out;
    must(keel_dataset_apply(&out, stage, args, &d, 1));
    keel_dataset_destroy(d);
    return out;
}

static keel_dataset *batched(keel_dataset *d)
{
    return put(d, "batch", KEEL_ARGS(KEEL_ARG_INT("batch_size", BATCH)));
}

static int64_t given;

static keel_status generate(void *context, void *x, void *y, float *weight, int64_t capacity,
                            int64_t *n)
{
    (void)y, (void)weight, (void)capacity;
    if (given == N) return KEEL_END;
    *(float *)x = (float)given++;
    *n = 1;
    sleep_noted(context);
    return KEEL_OK;
}

static keel_status again(void *context)
{
    (void)context;
    given = 0;
    return KEEL_OK;
}

static keel_dataset *generator(sleeper *s)
{
    const keel_generator g = { .size = sizeof g,
                               .x_shape = { 1, { 1 } },
                               .max_rows = 1,
                               .next = generate,
                               .reset = again,
                               .context = s };
    keel_dataset *d;
    given = 0;
    must(keel_dataset_from_generator(&d, &g));
    return d;
}

/* ---- blame ------------------------------------------------------------------------------------
 */

typedef struct costs {
    sleeper a, b;
} costs;

static keel_dataset *two_maps(costs *c)
{
    return mapped(mapped(only_x(), &c->a, "a"), &c->b, "b");
}
static keel_dataset *two_maps_in_a_stream(costs *c)
{
    return batched(mapped(filtered(only_x(), &c->a, "a"), &c->b, "b"));
}
static keel_dataset *a_map_of_batches(costs *c)
{
    return mapped(batched(mapped(only_x(), &c->a, "a")), &c->b, "b");
}
static keel_dataset *behind_a_generator(costs *c)
{
    return batched(mapped(put(generator(&c->a), "unbatch", NULL), &c->b, "b"));
}
static keel_dataset *a_generator(costs *c)
{
    return generator(&c->a);
}
static keel_dataset *a_shuffle_buffer(costs *c)
{
    return batched(mapped(
        put(filtered(only_x(), &c->a, "a"), "shuffle", KEEL_ARGS(KEEL_ARG_INT("buffer_size", 10))),
        &c->b, "b"));
}

static const struct blame {
    const char *what;
    keel_dataset *(*make)(costs *c);
    int64_t batch_size;
    int threads, a, b; /* microseconds of the stages */
    const char *late, *stage_a, *stage_b;
    int every; /* rows of which one sleeps in the late stage; their times are estimated */
} blames[] = {
    { "the second of two maps", two_maps, BATCH, 1, 200, 1000, "map 'b'", "map 'a'", "map 'b'" },
    { "the first of two maps", two_maps, BATCH, 1, 1000, 200, "map 'a'", "map 'a'", "map 'b'" },
    { "a map that three threads run", two_maps, BATCH, 3, 100, 1500, "map 'b'", "map 'a'",
      "map 'b'" },
    { "the same without threads", two_maps, BATCH, -1, 100, 1000, "map 'b'", "map 'a'", "map 'b'" },
    { "a filter of a stream", two_maps_in_a_stream, 0, 2, 1000, 100, "filter 'a'", "filter 'a'",
      "map 'b'" },
    { "a map of a stream", two_maps_in_a_stream, 0, 2, 100, 1500, "map 'b'", "filter 'a'",
      "map 'b'" },
    { "a map of batches", a_map_of_batches, 0, 1, 50, 3000, "map 'b'", "map 'a'", "map 'b'" },
    { "a generator", a_generator, BATCH, 1, 1000, 0, "generator", "generator", NULL },
    { "a generator before a map", behind_a_generator, 0, 2, 1000, 100, "generator", "generator",
      "map 'b'" },
    { "one slow row of twelve of a map", two_maps, BATCH, 1, 0, 10000, "map 'b'", "map 'a'",
      "map 'b'", 12 },
    { "the same in a stream", two_maps_in_a_stream, 0, 2, 0, 10000, "map 'b'", "filter 'a'",
      "map 'b'", 12 },
    { "one slow yield of twelve of a generator", a_generator, BATCH, 1, 10000, 0, "generator",
      "generator", NULL, 12 },
    { "what fills a shuffle buffer", a_shuffle_buffer, 0, 1, 1000, 50, "filter 'a'", "filter 'a'",
      "map 'b'" },
};

static const keel_input_stage *stage_of(const keel_input_stats *in, const char *name)
{
    for (int i = 0; name && i < in->n_stage; i++)
        if (!strcmp(in->stage[i].name, name)) return &in->stage[i];
    return NULL;
}

static bool is_near(double a, double b, double part)
{
    return fabs(a - b) <= part * b;
}

/* True if all numbers are right. */
static bool blames_right(const struct blame *b, bool says)
{
    costs c = { .a = { .us = b->a, .every = b->every }, .b = { .us = b->b, .every = b->every } };
    keel_input_stats in = { 0 };
    keel_dataset *d = b->make(&c);
    keel_feed *f;
    keel_batch batch;
    must(keel_feed_create(
        &f, d,
        &(keel_feed_options){ .batch_size = b->batch_size, .threads = b->threads, .slots = 3 }));
    must(keel_feed_begin_epoch(f, 0));
    while (keel_feed_next(f, &batch) == KEEL_OK) keel_feed_release(f, &batch);
    const double waited = keel_feed_wait_seconds(f);
    keel_input_measure(&in, keel_feed_work(f));
    const keel_input_stage *late = keel_input_latest(&in), *sa = stage_of(&in, b->stage_a),
                           *sb = stage_of(&in, b->stage_b);
    double sum = 0;
    for (int i = 0; i < in.n_stage; i++) sum += in.stage[i].waited;
    const double a_ns = 1e-9 * (double)c.a.ns, b_ns = 1e-9 * (double)c.b.ns;
    const bool right =
        late && !strcmp(late->name, b->late) && late->waited > 0.7 * sum && sa &&
        is_near(sum, waited, 0.001) &&
        (b->a < 1000 || (b->every && b->stage_b) || is_near(sa->seconds, a_ns, 0.05)) &&
        (!b->stage_b || b->b < 1000 || b->every || (sb && is_near(sb->seconds, b_ns, 0.05)));
    if (!right && says)
        fail_msg("%s: %s with %.4f of %.4f s waited, charged %.4f; a %.4f s, should be %.4f; b "
                 "%.4f s, should be %.4f",
                 b->what, late ? late->name : "none", late ? late->waited : 0, waited, sum,
                 sa ? sa->seconds : -1, a_ns, sb ? sb->seconds : -1, b_ns);
    keel_feed_destroy(f);
    keel_dataset_destroy(d);
    return right;
}

static void the_stage_where_the_late_row_is_gets_the_blame(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof blames / sizeof *blames; i++) {
        bool right = false;
        for (int k = 0; k < TRIES && !right; k++) right = blames_right(&blames[i], k == TRIES - 1);
    }
}

/* ---- advice -----------------------------------------------------------------------------------
 */

static keel_status end_of_batch(void *context, const keel_moment *at)
{
    (void)at;
    sleep_noted(context);
    return KEEL_OK;
}

/* What a fit says of its input, whose steps sleep so long apart from their rows. */
static void fitted(const keel_dataset *d, int threads, sleeper *step, int64_t epochs,
                   keel_input_stats *in)
{
    keel_model *m;
    keel_strategy *s;
    keel_history h;
    const keel_callback c = { .size = sizeof c,
                              .context = step,
                              .on_train_batch_end = end_of_batch };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 3));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 1))));
    must(keel_model_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 1))));
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE, .optimizer = { "SGD" }, .loss = { { "mse" } } }));
    must(keel_strategy_create(&s, "cpu:0"));
    const keel_fit_options o = {
        KEEL_FIT_OPTIONS,   .epochs = epochs,
        .no_shuffle = true, .batch_size = keel_dataset_is_batched(d) ? 0 : BATCH,
        .threads = threads, .callbacks = KEEL_CALLBACKS(&c)
    };
    must(keel_fit(m, s, d, &o, &h));
    *in = *h.input;
    keel_history_free(&h);
    keel_strategy_destroy(s);
    keel_model_destroy(m);
}

static const keel_input_remedy *remedy_of(const keel_input_stats *in, const char *what)
{
    for (int i = 0; i < in->n_remedy; i++)
        if (strstr(in->remedy[i].what, what)) return &in->remedy[i];
    return NULL;
}

static double step_of(const keel_input_stats *in)
{
    return in->seconds / (double)in->steps;
}

static keel_status map_xy(void *context, const keel_tensor *in, keel_tensor *out,
                          const keel_element_place *at)
{
    (void)at;
    for (int i = 0; i < 2; i++) memcpy(out[i].data, in[i].data, sizeof(float));
    sleep_noted(context);
    return KEEL_OK;
}

static keel_dataset *slow_rows(sleeper *s, bool stream, bool cached)
{
    const keel_map m = { .size = sizeof m, .call = map_xy, .context = s, .name = "slow" };
    static sleeper none;
    keel_dataset *d = numbers(), *out;
    if (stream) d = filtered(d, &none, "all");
    must(keel_dataset_map(&out, d, &m));
    keel_dataset_destroy(d);
    if (cached) out = put(out, "cache", NULL);
    return stream ? batched(out) : out;
}

static const struct advice {
    const char *what, *remedy;
    bool stream;
    int row_us, step_us, threads, then; /* then: threads of the remedy; 0: a cache */
} advices[] = {
    { "three threads are enough", "3 threads instead of 1", false, 1500, 2500, 1, 3 },
    { "one thread more", "3 threads instead of 2", false, 1500, 2500, 2, 3 },
    { "of a stream, whose own thread helps", "2 threads instead of 1", true, 2000, 3250, 1, 2 },
    { "a cache", "a cache behind map 'slow'", false, 1000, 1500, 1, 0 },
};

typedef enum verdict { RIGHT, WRONG, TOO_BUSY } verdict;

static double mean_ns(const sleeper *s)
{
    return (double)s->ns / (double)(s->rows ? s->rows : 1);
}

static bool slept_well(const sleeper *s)
{
    return is_near(mean_ns(s), 1e3 * s->us, 0.1);
}

/* Sleeps last longer on a busy machine, and steps have to wait for a core. What is predicted holds
 * for the machine that it was measured on, so both fits must have found it the same. */
static bool same_machine(const sleeper *a, const sleeper *b)
{
    return slept_well(a) && slept_well(b) && is_near(mean_ns(a), mean_ns(b), 0.015);
}

static double computes_of(const keel_input_stats *in)
{
    return (in->seconds - in->waited) / (double)in->steps;
}

/* `scale`: longer sleeps make less of what else there is. */
static verdict advises_right(const struct advice *a, int scale, bool says)
{
    sleeper row[2] = { { .us = scale * a->row_us }, { .us = scale * a->row_us } };
    sleeper step[2] = { { .us = scale * a->step_us }, { .us = scale * a->step_us } };
    keel_input_stats before, after;
    char text[KEEL_INPUT_TEXT_MAX];
    enum { EPOCHS = 4 }; /* of 12 steps: the input has settled after 20 */
    keel_dataset *d = slow_rows(&row[0], a->stream, false);
    fitted(d, a->threads, &step[0], EPOCHS, &before);
    keel_dataset_destroy(d);
    const keel_input_remedy *r = remedy_of(&before, a->remedy);
    const keel_input_stage *late = keel_input_latest(&before);
    d = slow_rows(&row[1], a->stream, !a->then);
    fitted(d, a->then ? a->then : a->threads, &step[1], EPOCHS, &after);
    keel_dataset_destroy(d);
    keel_input_text(&before, text);
    const bool right = r && late && !strcmp(late->name, "map 'slow'") && strstr(text, a->remedy) &&
                       strstr(text, "map 'slow'") &&
                       is_near(r->step_seconds, step_of(&after), 0.05) &&
                       is_near(r->factor, step_of(&before) / step_of(&after), 0.05);
    if (right) return RIGHT;
    if (!same_machine(&row[0], &row[1]) || !same_machine(&step[0], &step[1]) ||
        !is_near(computes_of(&before), 1e-9 * mean_ns(&step[0]), 0.03) ||
        !is_near(computes_of(&after), 1e-9 * mean_ns(&step[1]), 0.03))
        return TOO_BUSY;
    if (says)
        fail_msg("%s: '%s'; predicted %.3f ms, measured %.3f ms, before %.3f ms", a->what, text,
                 r ? 1e3 * r->step_seconds : -1, 1e3 * step_of(&after), 1e3 * step_of(&before));
    return WRONG;
}

static void what_is_predicted_comes_true(void **state)
{
    (void)state;
    int busy = 0;
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++) {
        verdict got = WRONG;
        for (int k = 0; k < TRIES && got != RIGHT; k++)
            got = advises_right(&advices[i], 1 + k / 2, k == TRIES - 1);
        busy += got == TOO_BUSY;
    }
    if (busy) print_message("%d cases say nothing: the machine was too busy\n", busy);
}

/* ---- the tuner, with times of a formula --------------------------------------------------------
 */

typedef struct machine {
    const char *what;
    double computes, work; /* milliseconds: of a step alone; of a thread for its rows */
    double harm;           /* part by which each thread but the first makes steps slower */
    double uneven;      /* part of a step that waits for single rows; each batch ahead halves it */
    int most;           /* threads there are */
    int threads, slots; /* that should be found after 20 steps */
    int later;          /* threads after 500 */
    const char *says;   /* in a line of --explain-input; NULL: nothing is changed */
} machine;

static const machine machines[] = {
    { "rows that are fast enough stay with one thread", 10, 5, 0, 0, 8, 1, 3, 1,
      "1 thread and 2 batches ahead stay" },
    { "two threads for a little too much work", 10, 12, 0, 0, 8, 2, 3, 2,
      "2 threads instead of 1" },
    { "four threads for much", 10, 30, 0, 0, 8, 4, 3, 4, "4 threads instead of 1" },
    { "all there are for more than they can do", 10, 200, 0, 0, 8, 8, 3, 8,
      "8 threads instead of 1" },
    { "a thread that costs steps is taken back", 10, 10.4, 0.2, 0, 8, 1, 3, 1,
      "2 threads instead of 1 do not make steps faster" },
    { "of several that cost steps one is tried alone", 10, 21, 0.8, 0, 4, 2, 3, 2, "so back to 1" },
    { "a thread that costs less than it gains stays, one that is idle goes", 10, 18, 0.05, 0, 8, 2,
      3, 2, "2 threads instead of 3" },
    { "rows that take uneven times need batches ahead", 10, 5, 0, 0.05, 8, 1, 6, 1,
      "batches ahead instead of" },
    { "rows of very uneven times need all there may be", 10, 5, 0, 0.1, 8, 1, KEEL_SLOTS_TUNED, 1,
      "7 batches ahead instead of 6" },
};

typedef struct heard {
    int lines;
    char all[8192];
} heard;

static void hear(void *context, const char *line)
{
    heard *h = context;
    const size_t n = strlen(h->all);
    h->lines++;
    snprintf(h->all + n, sizeof h->all - n, "%s\n", line);
}

static void shown_these_times_it_finds_its_threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const machine *m = &machines[i];
        sleeper none = { 0 };
        heard h = { 0 };
        keel_dataset *d = mapped(only_x(), &none, "map");
        keel_feed *f;
        must(keel_feed_create(
            &f, d,
            &(keel_feed_options){ .batch_size = BATCH, .on_decision = hear, .context = &h }));
        keel_tuner *t = &f->tuner;
        assert_int_equal(keel_feed_threads(f), 1); /* it begins with one */
        t->most_threads = t->ceiling = m->most;
        t->tunes_threads = t->on = true;
        keel_tuner_look now = { .seconds = 1 };
        int settled_lines = 0;
        for (int step = 1; step <= 500; step++) {
            const int n = keel_feed_threads(f);
            const double computes = m->computes * (1 + m->harm * (n - 1));
            double waits = m->work / n - computes;
            if (waits < 0) waits = 0;
            waits += m->uneven * m->computes / (1 << (keel_feed_slots(f) - 3));
            now.seconds += 1e-3 * (computes + waits);
            now.waited += 1e-3 * waits;
            now.work += 1e-3 * m->work;
            now.cpu += 1e-3 * m->work;
            pthread_mutex_lock(&f->lock);
            if (keel_tuner_is_due(f)) keel_tuner_sees(f, &now);
            pthread_mutex_unlock(&f->lock);
            keel_tuner_say(f);
            if (step == SETTLED) settled_lines = h.lines;
            if (step == LOOKS_AGAIN - 1 && h.lines != settled_lines)
                fail_msg("%s: something is decided after step %d\n%s", m->what, SETTLED, h.all);
            if ((step == SETTLED &&
                 (keel_feed_threads(f) != m->threads || keel_feed_slots(f) < m->slots)) ||
                (step == 500 && keel_feed_threads(f) != m->later))
                fail_msg("%s: step %d, %d threads, %d slots\n%s", m->what, step,
                         keel_feed_threads(f), keel_feed_slots(f), h.all);
        }
        if (!strstr(h.all, m->says)) fail_msg("%s: '%s' is not in\n%s", m->what, m->says, h.all);
        keel_feed_destroy(f);
        keel_dataset_destroy(d);
    }
}

/* A feed of rows that sleep, whose consumer sleeps: threads are found, and explained. */
static void sleeping_rows_get_the_threads_they_need(void **state)
{
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        bool found = false;
        for (int k = 0; k < TRIES && !found; k++) {
            sleeper s = { .us = 4000 };
            heard h = { 0 };
            keel_dataset *d = put(slow_rows(&s, stream, false), "repeat", NULL);
            keel_feed *f;
            keel_batch b;
            must(keel_feed_create(&f, d,
                                  &(keel_feed_options){ .batch_size = stream ? 0 : BATCH,
                                                        .steps_per_epoch = 40,
                                                        .on_decision = hear,
                                                        .context = &h }));
            assert_true(keel_feed_threads(f) == 1 && keel_feed_slots(f) == 3);
            must(keel_feed_begin_epoch(f, 0));
            for (int i = 0; i < SETTLED; i++) {
                must(keel_feed_next(f, &b));
                nap(stream ? 6000 : 10000);
                keel_feed_release(f, &b);
            }
            found = keel_feed_threads(f) >= 2 && strstr(h.all, "threads instead of 1") != NULL;
            if (!found && k == TRIES - 1)
                fail_msg("%s: %d threads\n%s", stream ? "a stream" : "rows by number",
                         keel_feed_threads(f), h.all);
            keel_feed_destroy(f);
            keel_dataset_destroy(d);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_stage_where_the_late_row_is_gets_the_blame),
        cmocka_unit_test(what_is_predicted_comes_true),
        cmocka_unit_test(shown_these_times_it_finds_its_threads),
        cmocka_unit_test(sleeping_rows_get_the_threads_they_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
