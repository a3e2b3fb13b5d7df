/* Streams in several processes: process 0 alone reads, each of the others gets its rows, and the
 * bits are those of one process: ends of the data, one pass or many, rows of several lengths, texts
 * that are looked up, failures, data that is slow. Processes are threads here. */
#include "process_works.h"
#include <time.h>

enum { FEW = 3 };

/* Rows of `images` in yields of up to `most` rows. */
typedef struct stream {
    int64_t at, pass, rows, given; /* given: in all passes */
    int64_t fails_at;              /* its row, from 1; 0: never */
    int64_t sleeps_at;             /* in ms for `slow` */
    int slow;
    bool forbidden; /* it belongs to a process that must not read */
    char text[16];
    keel_string word;
} stream;

static keel_status may_give(stream *g)
{
    if (g->forbidden) return keel_error_set(KEEL_ECALLBACK, "another process than 0 reads");
    if (g->fails_at && g->given + 1 >= g->fails_at)
        return keel_error_set(KEEL_EDATA, "a row is torn");
    if (g->sleeps_at && g->given >= g->sleeps_at) {
        g->sleeps_at = 0;
        nanosleep(&(struct timespec){ g->slow / 1000, g->slow % 1000 * 1000000L }, NULL);
    }
    return g->at >= g->rows ? KEEL_END : KEEL_OK;
}

static keel_status next(void *context, void *x, void *y, float *weight, int64_t capacity,
                        int64_t *rows)
{
    stream *g = context;
    const keel_status s = may_give(g);
    if (s != KEEL_OK) return s;
    int64_t n = 1 + (g->given * 7 + g->pass) % capacity;
    if (n > g->rows - g->at) n = g->rows - g->at;
    memcpy(x, images + g->at * SIDE * SIDE * 3, (size_t)n * SIDE * SIDE * 3 * sizeof(float));
    memcpy(y, labels + g->at, (size_t)n * sizeof(float));
    if (weight) memcpy(weight, weights + g->at, (size_t)n * sizeof(float));
    g->at += n;
    g->given += n;
    *rows = n;
    return KEEL_OK;
}

static keel_status reset(void *context)
{
    stream *g = context;
    g->at = 0;
    g->pass++;
    return g->forbidden ? keel_error_set(KEEL_ECALLBACK, "another process than 0 resets") : KEEL_OK;
}

/* A row of 1 to 7 steps. */
static keel_status next_row(void *context, const void **data, keel_shape *shape)
{
    stream *g = context;
    const keel_status s = may_give(g);
    if (s != KEEL_OK) return s;
    data[0] = images + g->at * 30;
    data[1] = labels + g->at;
    shape[0].dim[0] = 1 + (g->at * 5 + g->pass) % 7;
    g->at++;
    g->given++;
    return KEEL_OK;
}

/* A row with a word. */
static keel_status next_word(void *context, void *const *field, int64_t capacity, int64_t *rows)
{
    stream *g = context;
    const keel_status s = may_give(g);
    (void)capacity;
    if (s != KEEL_OK) return s;
    snprintf(g->text, sizeof g->text, "w%d", (int)(g->at % 11));
    g->word = (keel_string){ g->text, (int64_t)strlen(g->text) };
    *(keel_string *)field[0] = g->word;
    *(float *)field[1] = labels[g->at];
    g->at++;
    g->given++;
    *rows = 1;
    return KEEL_OK;
}

/* ---- works ----------------------------------------------------------------------------------- */

static keel_symbol lengths(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(KEEL_DIM_OPEN, 4), NULL, &x));
    x = must_call(m, "GRU", KEEL_ARGS(KEEL_ARG_INT("units", 9)), x);
    return dense(m, x, CLASSES, "softmax");
}

static keel_symbol words(keel_model *m)
{
    keel_symbol x;
    must(keel_model_input(m, KEEL_DIMS(1), KEEL_ARGS(KEEL_ARG_STR("dtype", "string")), &x));
    x = must_call(m, "StringLookup",
                  KEEL_ARGS(KEEL_ARG_JSON("vocabulary", "[\"w1\", \"w2\", \"w5\", \"w9\"]")), x);
    x = must_call(m, "Embedding",
                  KEEL_ARGS(KEEL_ARG_INT("input_dim", 5), KEEL_ARG_INT("output_dim", 6)), x);
    return dense(m, must_call(m, "Flatten", NULL, x), CLASSES, "softmax");
}

typedef struct work {
    recipe recipe;
    int64_t most, steps; /* rows of a yield; steps_per_epoch, 0: all rows */
    bool once, counted;  /* no reset; the number of rows is known */
    bool filtered;       /* by a pipeline, which is then what is read */
    bool validated;      /* by another stream */
} work;

#define WORK(name, network, end, batch, weighted)                                                  \
    {                                                                                              \
        name, network, KEEL_FLOAT32, NULL, "adam", end, batch, 16, weighted                        \
    }

static const work works[] = {
    { WORK("a short last step", products, KEEL_KEEP, 16, true), 11, .counted = true },
    { WORK("a dropped end", products, KEEL_DROP, 16, false), 11, .counted = true },
    { WORK("carried rows", products, KEEL_CARRY, 16, true), 5 },
    { WORK("rows again", products, KEEL_WRAP, 16, false), 16, .counted = true },
    { WORK("steps across passes", convolutions, KEEL_CARRY, 16, false), 40, .steps = 3 },
    { WORK("one pass", products, KEEL_KEEP, 10, true), 7, .steps = 3, .once = true },
    { WORK("one pass of all rows", products, KEEL_KEEP, 10, true), 7, .once = true },
    { WORK("states", going_on, KEEL_KEEP, GOING_ON, false), 4, .counted = true },
    { WORK("rows of several lengths", lengths, KEEL_KEEP, 16, false), .counted = true },
    { WORK("texts", words, KEEL_KEEP, 16, false), 1, .counted = true },
    { WORK("a pipeline", products, KEEL_KEEP, 16, true), 11, .filtered = true },
    { WORK("validation", products, KEEL_KEEP, 16, true), 11, .validated = true },
};

static keel_status keep_most(void *context, const keel_tensor *in, bool *keep,
                             const keel_element_place *at)
{
    (void)context, (void)at;
    *keep = ((const float *)in[1].data)[0] != 2;
    return KEEL_OK;
}

static keel_dataset *open_stream(const work *w, stream *g)
{
    keel_dataset *d, *rows, *kept;
    g->rows = ROWS;
    keel_generator from = { .size = sizeof from,
                            .context = g,
                            .max_rows = w->most,
                            .rows = w->counted ? ROWS : 0,
                            .reset = w->once ? NULL : reset };
    const bool has_words = w->recipe.network == words;
    const keel_data_field fields[2] = {
        has_words ? (keel_data_field){ "x", KEEL_STRING, { 1, { 1 } } }
                  : (keel_data_field){ "x", KEEL_FLOAT32, { 2, { KEEL_DIM_OPEN, 4 } } },
        { "y", KEEL_FLOAT32, { 0 }, KEEL_ROLE_TARGET }
    };
    if (has_words || w->recipe.network == lengths) {
        from.n_field = 2;
        from.field = fields;
        if (has_words)
            from.next_fields = next_word;
        else
            from.next_row = next_row;
    } else {
        from.x_shape = (keel_shape){ 3, { SIDE, SIDE, 3 } };
        from.has_y = true;
        from.has_weight = w->recipe.weighted;
        from.next = next;
    }
    must(keel_dataset_from_generator(&d, &from));
    if (!w->filtered) return d;
    const keel_filter f = { .size = sizeof f, .call = keep_most };
    must(keel_dataset_unbatch(&rows, d));
    must(keel_dataset_filter(&kept, rows, &f));
    keel_dataset_destroy(d);
    keel_dataset_destroy(rows);
    return kept;
}

typedef struct reader {
    process p; /* first */
    const work *work;
    stream from, validates;
    keel_dataset *validation;
    keel_input_watch watch;
} reader;

static keel_status run_stream(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    static const int64_t bucket[] = { 3, 8 };
    const reader *r = (const reader *)p;
    const recipe *of = p->recipe;
    const keel_fit_options o = { KEEL_FIT_OPTIONS,
                                 .batch_size = of->batch_size,
                                 .epochs = r->work->once && !r->work->steps ? 1 : 2,
                                 .steps_per_epoch = r->work->steps,
                                 .end = of->end,
                                 .validation = r->validation,
                                 .watch = r->watch.size ? &r->watch : NULL,
                                 .bucket = of->network == lengths ? bucket : NULL,
                                 .bucket_count = of->network == lengths ? 2 : 0,
                                 .callbacks = callbacks };
    keel_status st = s->comm ? keel_strategy_timeout(s, p->timeout) : KEEL_OK;
    if (st >= 0) st = keel_strategy_reproducible(s, of->shards);
    if (st >= 0) st = keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history);
    if (st >= 0 && !r->work->once)
        st = keel_evaluate(p->outcome.model, s, p->data, &o, &p->outcome.logs);
    if (st >= 0 && !r->work->once)
        st = keel_predict(p->outcome.model, s, p->data, &o, &p->outcome.predicted);
    return st;
}

static void begin_reader(reader *r, const work *w, thread_group *group, int rank, int lanes)
{
    *r = (reader){ .work = w };
    r->p = (process){ .recipe = &w->recipe,
                      .data = open_stream(w, &r->from),
                      .outcome.model = model_of(&w->recipe),
                      .lanes = lanes,
                      .workers = lanes > 1 ? 2 : 1,
                      .timeout = PATIENT,
                      .run = run_stream };
    if (w->validated) r->validation = open_stream(w, &r->validates);
    r->from.forbidden = r->validates.forbidden = rank > 0;
    if (group) r->p.group = thread_group_of(group, rank);
}

static void end_reader(reader *r)
{
    forget(&r->p.outcome);
    keel_dataset_destroy(r->p.data);
    keel_dataset_destroy(r->validation);
}

static void run_readers(reader *r, int n)
{
    live_together(live, r, sizeof *r, n);
}

static void run_one(reader *one, const work *w)
{
    keel_strategy *s;
    begin_reader(one, w, NULL, 0, 1);
    must(keel_strategy_create(&s, "cpu:0"));
    if (run_stream(&one->p, s, NULL) < 0) fail_msg("%s: %s", w->recipe.name, keel_error());
    keel_strategy_destroy(s);
}

/* ---- bits ------------------------------------------------------------------------------------ */

static void streams_have_the_bits_of_one_process(void **unused)
{
    static const int counts[] = { 2, 3, 4, 7, 8 };
    (void)unused;
    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const work *w = &works[i];
        reader one;
        run_one(&one, w);
        for (size_t c = 0; c < 5; c++) {
            thread_group group;
            reader r[THREADS_MAX];
            const int n = counts[c];
            char how[64];
            if ((c + i) % (size_t)thin(2, 4, 5)) continue;
            thread_group_begin(&group, n);
            for (int k = 0; k < n; k++)
                begin_reader(&r[k], w, &group, k, 1 + (int)(k + c) % (n > 4 ? 2 : 3));
            run_readers(r, n);
            for (int k = 0; k < n; k++) {
                if (r[k].p.status < 0)
                    fail_msg("%s, process %d of %d: %s", w->recipe.name, k, n, r[k].p.error);
                snprintf(how, sizeof how, "process %d of %d", k, n);
                compare(&one.p.outcome, &r[k].p.outcome, &w->recipe, how);
                assert_int_equal(r[k].from.given, k ? 0 : one.from.given);
            }
            for (int k = 0; k < n; k++) end_reader(&r[k]);
            thread_group_end(&group);
        }
        end_reader(&one);
    }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void a_failure_of_the_stream_is_told_to_all(void **unused)
{
    (void)unused;
    for (int at = 1; at <= 76; at += 25) {
        thread_group group;
        reader r[FEW];
        thread_group_begin(&group, FEW);
        for (int k = 0; k < FEW; k++) begin_reader(&r[k], &works[2], &group, k, 1);
        r[0].from.fails_at = at;
        run_readers(r, FEW);
        for (int k = 0; k < FEW; k++) {
            assert_int_equal(r[k].p.status, KEEL_ECALLBACK);
            assert_non_null(strstr(r[k].p.error, "is torn"));
            assert_true(k == 0 || strstr(r[k].p.error, "process 0 (here)"));
            compare_weights(&r[0].p.outcome, &r[k].p.outcome, r[k].p.recipe, "after a failure");
        }
        for (int k = 0; k < FEW; k++) end_reader(&r[k]);
        thread_group_end(&group);
    }
}

/* Data that comes `slow` ms late, where processes wait for each other for `timeout` seconds and for
 * the data for `limit`. Returns whether all end so; else why[] says how. once: before the first
 * epoch, else within it. */
static bool slow_ends(keel_status want, bool once, double timeout, double limit, int slow,
                      char *why, size_t size)
{
    thread_group group;
    reader r[FEW];
    bool good = true;
    thread_group_begin(&group, FEW);
    for (int k = 0; k < FEW; k++) {
        begin_reader(&r[k], &works[once ? 6 : 2], &group, k, 1);
        r[k].p.timeout = timeout;
        if (limit > 0) r[k].watch = (keel_input_watch){ .size = sizeof r[k].watch, .limit = limit };
    }
    r[0].from.sleeps_at = once ? 1 : 30;
    r[0].from.slow = slow;
    run_readers(r, FEW);
    for (int k = 0; k < FEW; k++) {
        if (good && r[k].p.status != want) {
            good = false;
            snprintf(why, size, "%d ms, process %d: %s: %s", slow, k,
                     keel_status_name(r[k].p.status), r[k].p.error);
        }
        end_reader(&r[k]);
    }
    thread_group_end(&group);
    return good;
}

/* On a busy machine a process may be silent for as long as these short times. So all take longer
 * where it does not end so. */
static void slow_ends_so(keel_status want, double timeout, double limit, int slow)
{
    for (int once = 0; once < 2; once++) {
        char why[1200] = "";
        bool good = false;
        for (int longer = SLOW ? 16 : 1; longer <= 64 && !good; longer *= 4)
            good = slow_ends(want, once, longer * timeout, longer * limit, longer * slow, why,
                             sizeof why);
        if (!good) fail_msg("%s", why);
    }
}

static void slow_data_is_no_lost_process(void **unused)
{
    (void)unused;
    slow_ends_so(KEEL_OK, 0.25, 0, 450);
}

static void data_that_never_comes_is_told_to_all(void **unused)
{
    (void)unused;
    slow_ends_so(KEEL_ETIMEOUT, 0.4, 0.2, 400);
}

static void another_process_that_fails_ends_all(void **unused)
{
    (void)unused;
    for (int who = 0; who < 2; who++) {
        thread_group group;
        reader r[FEW];
        thread_group_begin(&group, FEW);
        for (int k = 0; k < FEW; k++) begin_reader(&r[k], &works[0], &group, k, 1);
        r[who].p.fails_at = 3;
        run_readers(r, FEW);
        for (int k = 0; k < FEW; k++) {
            if (r[k].p.status != KEEL_ECALLBACK || !strstr(r[k].p.error, "the test ends it"))
                fail_msg("process %d, after a failure of %d: %s", k, who, r[k].p.error);
            compare_weights(&r[0].p.outcome, &r[k].p.outcome, r[k].p.recipe, "after a failure");
        }
        for (int k = 0; k < FEW; k++) end_reader(&r[k]);
        thread_group_end(&group);
    }
}

static void a_process_that_is_lost_is_named(void **unused)
{
    (void)unused;
    for (int k = 6; k < 60; k += SLOW ? 30 : 17) {
        thread_group group;
        reader r[FEW];
        thread_group_begin(&group, FEW);
        for (int i = 0; i < FEW; i++) {
            begin_reader(&r[i], &works[0], &group, i, 1);
            r[i].p.timeout = SLOW ? 2 : 0.25;
        }
        group.member[k % 2].mute_at = k;
        run_readers(r, FEW);
        for (int i = 0; i < FEW; i++) {
            if (r[i].p.status != KEEL_EREMOTE)
                fail_msg("exchange %d, process %d: %s: %s", k, i, keel_status_name(r[i].p.status),
                         r[i].p.error);
            end_reader(&r[i]);
        }
        thread_group_end(&group);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_have_the_bits_of_one_process),
        cmocka_unit_test(a_failure_of_the_stream_is_told_to_all),
        cmocka_unit_test(slow_data_is_no_lost_process),
        cmocka_unit_test(data_that_never_comes_is_told_to_all),
        cmocka_unit_test(another_process_that_fails_ends_all),
        cmocka_unit_test(a_process_that_is_lost_is_named),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
