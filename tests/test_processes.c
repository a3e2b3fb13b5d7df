/* Several processes have the bits of one: weights, the optimizer's state, BatchNorm's statistics,
 * logs and predictions, for any number of processes and lanes. Processes are threads here. */
#include "sent_bytes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "device/cpu/cpu.h"

/* Process i has lanes[i] lanes. */
static void runs_as_one(const recipe *r, const outcome *one, int n, const int *lanes, int workers)
{
    thread_group group;
    process p[THREADS_MAX] = { { 0 } };
    char how[64];
    thread_group_begin(&group, n);
    for (int i = 0; i < n; i++) {
        p[i] = (process){ .recipe = r,
                          .group = thread_group_of(&group, i),
                          .data = rows_of(r),
                          .outcome.model = model_of(r),
                          .lanes = lanes[i],
                          .timeout = PATIENT,
                          .measured = lanes[0] % 2 == 0,
                          .workers = workers < lanes[i] ? workers : lanes[i] };
    }
    run_all(p, n);
    for (int i = 0; i < n; i++) {
        if (p[i].status < 0)
            fail_msg("%s, %d processes, process %d: %s", r->name, n, i, p[i].error);
        snprintf(how, sizeof how, "process %d of %d with %d lanes", i, n, lanes[i]);
        compare(one, &p[i].outcome, r, how);
        assert_true(group.member[i].closed);
    }
    for (int i = 0; i < n; i++) {
        forget(&p[i].outcome);
        keel_dataset_destroy(p[i].data);
    }
    thread_group_end(&group);
}

static void bits_are_those_of_one_process(void **unused)
{
    static const int counts[] = { 2, 3, 4, 7, 8 };
    (void)unused;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        const recipe *r = &recipes[i];
        outcome one = { .model = model_of(r) };
        keel_dataset *d = rows_of(r);
        keel_strategy *s;
        must(keel_strategy_create(&s, "cpu:0"));
        must(run_on(&one, r, s, d));
        for (size_t c = 0; c < 5; c++) {
            int lanes[THREADS_MAX], all = 0;
            const bool all_counts = i == 0 || (r->network == going_on && thin(1, 0, 0));
            if (!all_counts && (c + i) % (size_t)thin(2, 4, 10)) continue;
            for (int k = 0; k < counts[c]; k++)
                all += lanes[k] = 1 + (int)(k + c + i) % (counts[c] > 4 ? 2 : 4);
            if (all > r->shards) continue;
            runs_as_one(r, &one, counts[c], lanes, 1 + (int)(i + c) % 2);
        }
        keel_strategy_destroy(s);
        keel_dataset_destroy(d);
        forget(&one);
    }
}

/* The last step has three rows: most processes have none in it. */
static void last_steps_may_have_fewer_rows_than_processes(void **unused)
{
    static const recipe r = { "convolutions, three rows at last",
                              convolutions,
                              KEEL_FLOAT32,
                              NULL,
                              "adam",
                              KEEL_KEEP,
                              24,
                              16,
                              true };
    static const int counts[] = { 5, 6, 12, 16 };
    (void)unused;
    outcome one = { .model = model_of(&r) };
    keel_dataset *d = rows_of(&r);
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0"));
    must(run_on(&one, &r, s, d));
    for (int c = 0; c < 4; c += SLOW ? 3 : 1) {
        int lanes[THREADS_MAX];
        for (int k = 0; k < counts[c]; k++) lanes[k] = counts[c] < 7 ? 1 + k % 3 : 1;
        runs_as_one(&r, &one, counts[c], lanes, 1 + c % 2);
    }
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    forget(&one);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

enum { TROUBLED = 3, MOST_TROUBLED = 10 };

typedef struct trouble {
    int n;
    process p[MOST_TROUBLED];
    thread_group group;
} trouble;

static void begin_trouble_of(trouble *t, int n, const recipe *r, double timeout)
{
    memset(t, 0, sizeof *t);
    t->n = n;
    thread_group_begin(&t->group, n);
    for (int i = 0; i < n; i++)
        t->p[i] = (process){ .recipe = r,
                             .group = thread_group_of(&t->group, i),
                             .data = rows_of(r),
                             .outcome.model = model_of(r),
                             .lanes = 1 + i % 2,
                             .workers = 1,
                             .timeout = timeout };
}

static void begin_trouble(trouble *t, const recipe *r, double timeout)
{
    begin_trouble_of(t, TROUBLED, r, timeout);
}

static void end_trouble(trouble *t)
{
    for (int i = 0; i < t->n; i++) {
        assert_true(t->group.member[i].closed);
        forget(&t->p[i].outcome);
        keel_dataset_destroy(t->p[i].data);
    }
    thread_group_end(&t->group);
}

/* The weights of all who ended in the same way are the same: no step was half applied. */
static void models_are_of_whole_steps(const trouble *t, int but)
{
    const outcome *first = NULL;
    for (int i = 0; i < t->n; i++) {
        const outcome *o = &t->p[i].outcome;
        if (i == but) continue;
        if (first && o->model->compiled.iterations == first->model->compiled.iterations)
            compare_weights(first, o, t->p[i].recipe, "a process after a failure");
        first = o;
    }
}

enum how { CANNOT_START, SILENT, CANNOT_END, HOWS };

/* Process i names the one that is lost, or one that has named it: who has ended already, because an
 * exchange failed, cannot say that it was there. */
static bool names(const trouble *t, int i, const char *lost)
{
    char another[64];
    bool named = strstr(t->p[i].error, lost);
    for (int q = 0; q < t->n && !named; q++) {
        snprintf(another, sizeof another, "process %d (here) has not answered", q);
        named = strstr(t->p[i].error, another) && strstr(t->p[q].error, lost);
    }
    return named;
}

typedef struct fallen {
    const recipe *recipe;
    int n, who, k;
    enum how how;
    int exchanges; /* of a process, if none falls */
} fallen;

/* A process falls silent at its k-th exchange, or cannot begin or end it. Returns whether each ends
 * as it should. */
static bool fall_within(const fallen *f, double timeout, char *why, size_t size)
{
    trouble t;
    char name[64];
    bool good = true;
    begin_trouble_of(&t, f->n, f->recipe, timeout);
    struct thread_member *m = &t.group.member[f->who];
    if (f->how == SILENT) m->mute_at = f->k;
    if (f->how == CANNOT_START) m->fail_at = f->k;
    if (f->how == CANNOT_END) m->test_fails_at = f->k;
    snprintf(name, sizeof name, "process %d (here) has not answered", f->who);
    run_all(t.p, f->n);
    for (int i = 0; i < f->n && good; i++) {
        /* what it sent may be all that the others needed, if it was the last */
        const bool last = f->how == CANNOT_END && f->k == f->exchanges && i != f->who;
        if (t.p[i].status == KEEL_OK && last) continue;
        good = t.p[i].status == KEEL_EREMOTE && (i == f->who || names(&t, i, name));
        if (!good)
            snprintf(why, size,
                     "exchange %d of %d, process %d lost within %g s: process %d: %s: %s", f->k,
                     f->exchanges, f->who, timeout, i, keel_status_name(t.p[i].status),
                     t.p[i].error);
    }
    models_are_of_whole_steps(&t, f->who);
    end_trouble(&t);
    return good;
}

/* On a busy machine one that is well may be silent for as long as the timeout, which is short here.
 * So whoever is wrongly named gets more time. */
static void fall(const recipe *r, int n, int who, int k, enum how how, int exchanges)
{
    const fallen f = { r, n, who, k, how, exchanges };
    char why[1400] = "";
    bool good = false;
    for (double s = SLOW ? 2 : n > TROUBLED ? 0.6 : 0.25; s < 20 && !good; s *= 4)
        good = fall_within(&f, s, why, sizeof why);
    if (!good) fail_msg("%s", why);
}

static const recipe small_work = { "a small work", products, KEEL_FLOAT32, NULL, "adam",
                                   KEEL_KEEP,      40,       16,           false };

static void a_process_that_is_lost_at_any_exchange_is_named_by_all(void **unused)
{
    (void)unused;
    trouble t;
    begin_trouble(&t, &small_work, PATIENT);
    run_all(t.p, TROUBLED);
    const int all = t.group.member[1].exchanges;
    for (int i = 0; i < TROUBLED; i++) assert_int_equal(t.p[i].status, KEEL_OK);
    end_trouble(&t);
    assert_true(all > 30);
    /* not the last: who sends nothing there has all that it needs */
    for (int k = 1; k < all; k += thin(k < 20 ? 1 : 11, k < 20 ? 4 : 23, 11))
        fall(&small_work, TROUBLED, k % 4 ? 1 : k / 4 % 2 * 2, k, (enum how)(k % HOWS), all);
    fall(&small_work, TROUBLED, 1, all, CANNOT_END, all);
}

/* Ten have two rounds, in which it is missed by some, for which the others wait. */
static void a_process_that_is_lost_between_rounds_is_named_by_all(void **unused)
{
    static const recipe work = { "statistics", convolutions, KEEL_FLOAT32, NULL, "adam",
                                 KEEL_KEEP,    40,           16,           false };
    (void)unused;
    trouble t;
    begin_trouble_of(&t, MOST_TROUBLED, &work, PATIENT);
    run_all(t.p, MOST_TROUBLED);
    const int all = t.group.member[0].exchanges;
    for (int i = 0; i < MOST_TROUBLED; i++)
        if (t.p[i].status < 0) fail_msg("process %d: %s", i, t.p[i].error);
    end_trouble(&t);
    for (int i = 0; i < (SLOW ? 3 : 6); i++) /* exchanges that follow each other, of a step */
        fall(&work, MOST_TROUBLED, i * 3 % MOST_TROUBLED, all / 4 + i, (enum how)(i % HOWS), all);
}

/* Messages that come late, and to each process in another order, change nothing. */
static void late_messages_change_nothing(void **unused)
{
    (void)unused;
    outcome one = { .model = model_of(&small_work) };
    keel_dataset *d = rows_of(&small_work);
    keel_strategy *s;
    must(keel_strategy_create(&s, "cpu:0"));
    must(run_on(&one, &small_work, s, d));
    trouble t;
    begin_trouble(&t, &small_work, PATIENT);
    for (int i = 0; i < TROUBLED; i++) t.group.member[i].late = 5 + 20 * i;
    run_all(t.p, TROUBLED);
    for (int i = 0; i < TROUBLED; i++) {
        if (t.p[i].status < 0) fail_msg("process %d: %s", i, t.p[i].error);
        compare(&one, &t.p[i].outcome, &small_work, "a process on a slow network");
    }
    end_trouble(&t);
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    forget(&one);
}

static void a_failure_of_one_process_is_that_of_all(void **unused)
{
    (void)unused;
    trouble t;
    begin_trouble(&t, &small_work, PATIENT);
    t.p[2].fails_at = 1;
    run_all(t.p, TROUBLED);
    for (int i = 0; i < TROUBLED; i++) {
        assert_int_equal(t.p[i].status, KEEL_ECALLBACK);
        if (i != 2) assert_non_null(strstr(t.p[i].error, "process 2 (here)"));
        assert_non_null(strstr(t.p[i].error, "the test ends it"));
    }
    models_are_of_whole_steps(&t, -1);
    end_trouble(&t);
}

static int unlike; /* how the last process differs */

static keel_status fit_unlike(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    const bool last = p->group.rank == TROUBLED - 1;
    const keel_checkpoint_options none = { KEEL_CHECKPOINT_OPTIONS };
    const keel_checkpoint_options some = { KEEL_CHECKPOINT_OPTIONS, .folder = "nowhere" };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .epochs = unlike == 0 && last ? 3 : 2,
                                 .validation = unlike == 1 && last ? p->data : NULL,
                                 .checkpoint = unlike == 2 && last ? &some : &none,
                                 .callbacks = callbacks };
    return keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history);
}

static void processes_of_unlike_runs_are_refused_before_one_waits(void **unused)
{
    (void)unused;
    static const char *const says[] = { "its epochs is 3, that of process 0 is 2",
                                        "its validation is",
                                        "its checkpoint is true, that of process 0 is false" };
    for (unlike = 0; unlike < 3; unlike++) {
        trouble t;
        begin_trouble(&t, &small_work, PATIENT);
        for (int i = 0; i < TROUBLED; i++) t.p[i].run = fit_unlike;
        run_all(t.p, TROUBLED);
        for (int i = 0; i < TROUBLED; i++)
            if (t.p[i].status != KEEL_EARG || !strstr(t.p[i].error, says[unlike]))
                fail_msg("process %d: %s", i, t.p[i].error);
        end_trouble(&t);
    }
}

/* What a callback of a process sets after the first step, if it is one of those that set it. */
static enum { A_RATE, A_WEIGHT, SETS } setting;
static int n_setting;

static keel_status set_something(void *context, const keel_moment *at)
{
    const process *p = context;
    keel_model *m = p->outcome.model;
    keel_tensor weight = { 0 };
    if (at->step != 1 || p->group.rank >= n_setting) return KEEL_OK;
    if (setting == A_RATE) return keel_model_set_learning_rate(m, 0.125);
    const char *name = keel_model_weight_name(m, 0);
    keel_status s = keel_model_get_weight(m, name, &weight);
    if (s >= 0) {
        *(float *)weight.data += 1;
        s = keel_model_set_weight(m, name, &weight);
    }
    keel_tensor_free(&weight);
    return s;
}

static keel_status fit_and_set(process *p, keel_strategy *s, const keel_callback *const *callbacks)
{
    const keel_callback sets = { KEEL_CALLBACK, .on_train_batch_end = set_something, .context = p };
    (void)callbacks;
    return run_with(&p->outcome, p->recipe, s, p->data, KEEL_CALLBACKS(&sets));
}

/* Else they would train different models from there on. */
static void callbacks_that_set_something_set_it_in_all_processes(void **unused)
{
    (void)unused;
    for (setting = 0; setting < SETS; setting++)
        for (n_setting = 1; n_setting <= TROUBLED; n_setting++) {
            trouble t;
            begin_trouble(&t, &small_work, PATIENT);
            for (int i = 0; i < TROUBLED; i++) t.p[i].run = fit_and_set;
            run_all(t.p, TROUBLED);
            for (int i = 0; i < TROUBLED; i++)
                if (t.p[i].status != (n_setting < TROUBLED ? KEEL_ECALLBACK : KEEL_OK) ||
                    (t.p[i].status < 0 && !strstr(t.p[i].error, "set the same in all processes")))
                    fail_msg("%d of %d set it, process %d: %s", n_setting, TROUBLED, i,
                             t.p[i].error);
            if (setting == A_RATE) models_are_of_whole_steps(&t, -1);
            end_trouble(&t);
        }
}

/* A step that a process stops before is not counted by any. */
static void a_process_that_stops_stops_all_before_the_next_step(void **unused)
{
    (void)unused;
    for (int k = 0; k < 2 * TROUBLED; k++) {
        trouble t;
        begin_trouble(&t, &small_work, PATIENT);
        if (k < TROUBLED)
            t.p[k].stops_at = 1;
        else /* after the first step, as in one process */
            t.p[k - TROUBLED].stops_early = true;
        run_all(t.p, TROUBLED);
        for (int i = 0; i < TROUBLED; i++) {
            const outcome *o = &t.p[i].outcome;
            if (t.p[i].status < 0) fail_msg("process %d: %s", i, t.p[i].error);
            assert_true(o->history.stopped);
            assert_int_equal(o->history.steps, 1);
            assert_int_equal(o->model->compiled.iterations, 1);
        }
        models_are_of_whole_steps(&t, -1);
        end_trouble(&t);
    }
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* A group of two whose other process says what this one says, but for its instruction set. */
typedef struct echo {
    int64_t level;
    int closed;
} echo;

static const char *echo_host(void *context, int rank)
{
    (void)context, (void)rank;
    return "here";
}

static int echo_start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    const echo *x = context;
    int64_t said[2]; /* how it stands, and its set */
    (void)number, (void)error, (void)size;
    memcpy(e->receive[1], e->send[1], e->receive_bytes[1]);
    if (e->receive_bytes[1] < sizeof said) return 0;
    memcpy(said, e->send[1], sizeof said);
    if (said[0] == KEEL_OK) said[1] = x->level;
    memcpy(e->receive[1], said, sizeof said);
    return 0;
}

static int echo_test(void *context, int number, char *error, size_t size)
{
    (void)context, (void)number, (void)error, (void)size;
    return 1;
}

static int echo_awaited(void *context, int number)
{
    (void)context, (void)number;
    return -1;
}

static void echo_close(void *context, bool failed)
{
    (void)failed;
    ((echo *)context)->closed++;
}

static void common_instructions_are_the_least_of_all(void **unused)
{
    const keel_cpu_isa own = keel_cpu_level();
    (void)unused;
    for (int level = -1; level <= KEEL_CPU_ISAS; level++) {
        echo x = { .level = level };
        const keel_process_group g = { KEEL_PROCESS_GROUP,      .count = 2,
                                       .context = &x,           .host = echo_host,
                                       .start = echo_start,     .test = echo_test,
                                       .awaited = echo_awaited, .close = echo_close };
        const bool known = level >= 0 && level < KEEL_CPU_ISAS;
        keel_cpu_limit(KEEL_CPU_AMX);
        assert_int_equal(keel_instructions_common(&g), known ? KEEL_OK : KEEL_EREMOTE);
        const keel_cpu_isa want = known && level < (int)own ? (keel_cpu_isa)level : own;
        assert_string_equal(keel_instructions(), keel_cpu_isa_name(want));
        if (level == (int)own) assert_int_equal(keel_cpu_limit_now(), KEEL_CPU_AMX);
        const int64_t live = keel_memory_live();
        for (int k = 0;; k++) {
            keel_memory_fail_at(k);
            const keel_status s = keel_instructions_common(&g);
            if (s != KEEL_ENOMEM) break;
            assert_int_equal(keel_memory_live(), live);
        }
        keel_memory_fail_at(-1);
        assert_int_equal(x.closed, 0);
    }
    keel_cpu_limit(KEEL_CPU_AMX);
}

/* As if this process had been stopped for a time: the other one is not to blame for that. */
static void time_in_which_a_process_was_stopped_is_not_silence(void **unused)
{
    const struct {
        const char *what;
        double start, seen, excused; /* seconds ago; excused: so many */
        keel_status want;
    } cases[] = {
        { "the other is silent for longer than the timeout", 2, 0, 0, KEEL_EREMOTE },
        { "nothing is late", 0.5, 0, 0, KEEL_OK },
        { "this one was stopped, until now", 5, 5, 0, KEEL_OK },
        { "it was stopped, and then the other was silent", 5, 0, 3, KEEL_EREMOTE },
        { "it is stopped again and again", 20, 2, 10, KEEL_EREMOTE },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        echo x = { 0 };
        keel_comm *c = NULL;
        const keel_process_group g = { KEEL_PROCESS_GROUP, .count = 2,
                                       .timeout = 1,       .context = &x,
                                       .host = echo_host,  .start = echo_start,
                                       .test = echo_test,  .awaited = echo_awaited,
                                       .close = echo_close };
        must(keel_comm_create(&c, &g));
        keel_patience p = keel_patience_begin();
        p.start -= (int64_t)(1e9 * cases[i].start);
        p.seen -= (int64_t)(1e9 * cases[i].seen);
        p.excused = (int64_t)(1e9 * cases[i].excused);
        if (keel_comm_patience(c, 0, &p) != cases[i].want) fail_msg("%s", cases[i].what);
        keel_comm_destroy(c);
    }
}

/* An exchange whose tests take so long each, as those that copy bytes do, until `tests` were made.
 */
typedef struct copying {
    int64_t each_ns, end; /* end: of the last test */
    int tests, left, naps;
} copying;

static int copying_start(void *context, int number, const keel_exchange *e, char *error,
                         size_t size)
{
    copying *x = context;
    (void)number, (void)e, (void)error, (void)size;
    x->left = x->tests;
    x->naps = 0;
    x->end = 0;
    return 0;
}

static void copying_close(void *context, bool failed)
{
    (void)context, (void)failed;
}

static int copying_test(void *context, int number, char *error, size_t size)
{
    enum { NAP_NS = 40000 };
    copying *x = context;
    const int64_t begin = keel_clock_ns();
    (void)number, (void)error, (void)size;
    x->naps += x->end && begin - x->end > NAP_NS;
    while (keel_clock_ns() - begin < x->each_ns) continue;
    x->end = keel_clock_ns();
    return --x->left <= 0;
}

static void who_copies_what_has_come_does_not_sleep(void **unused)
{
    enum { TESTS = 60 };
    copying x = { .tests = TESTS };
    keel_comm *c = NULL;
    const keel_process_group g = { KEEL_PROCESS_GROUP,      .count = 2,
                                   .context = &x,           .host = echo_host,
                                   .start = copying_start,  .test = copying_test,
                                   .awaited = echo_awaited, .close = copying_close };
    (void)unused;
    must(keel_comm_create(&c, &g));
    must(keel_comm_exchange_noted(c)); /* tests that move nothing are short */
    x.each_ns = 30000;
    must(keel_comm_exchange_noted(c));
    if (x.naps > TESTS / 2) fail_msg("%d naps between %d tests", x.naps, TESTS);
    x.each_ns = 0;
    x.tests = 2000; /* more than are made in the time in which one polls */
    must(keel_comm_exchange_noted(c));
    if (x.naps < TESTS) fail_msg("who waits for others sleeps, but only %d times", x.naps);
    keel_comm_destroy(c);
}

/* ---- what a process reads -------------------------------------------------------------------- */

typedef struct counting {
    _Atomic int64_t rows;
    size_t bytes[2];
} counting;

static keel_status count_row(void *context, const keel_tensor *in, keel_tensor *out,
                             const keel_element_place *at)
{
    counting *c = context;
    (void)at;
    for (int i = 0; i < 2; i++) memcpy(out[i].data, in[i].data, c->bytes[i]);
    c->rows++;
    return KEEL_OK;
}

static void put_count(process *p, counting *c)
{
    keel_dataset *d = p->data;
    *c = (counting){ .bytes = { SIDE * SIDE * 3 * sizeof(float), sizeof(float) } };
    const keel_map m = { .size = sizeof m, .call = count_row, .context = c };
    must(keel_dataset_map(&p->data, d, &m));
    keel_dataset_destroy(d);
}

static void a_process_reads_its_own_rows_alone(void **unused)
{
    (void)unused;
    trouble t;
    counting c[TROUBLED];
    const int lanes[TROUBLED] = { 1, 2, 1 };
    begin_trouble(&t, &small_work, PATIENT);
    for (int i = 0; i < TROUBLED; i++) put_count(&t.p[i], &c[i]);
    run_all(t.p, TROUBLED);
    int64_t before = 0;
    for (int i = 0; i < TROUBLED; i++) {
        int64_t own = 0;
        for (int at = 0; at < ROWS; at += 40) { /* whole shards of each step, as lanes have them */
            const int64_t n = ROWS - at < 40 ? ROWS - at : 40;
            own += keel_cut_first(n, 16, keel_cut_first(16, 4, before + lanes[i])) -
                   keel_cut_first(n, 16, keel_cut_first(16, 4, before));
        }
        before += lanes[i];
        if (t.p[i].status < 0) fail_msg("%s", t.p[i].error);
        /* two epochs, evaluate and predict; the identity of the run looks at 64 rows of all */
        assert_int_equal(c[i].rows, 4 * own + 64);
    }
    end_trouble(&t);
}

/* ---- what travels ---------------------------------------------------------------------------- */

static int travelling(const recipe *r)
{
    return r->network == going_on ? GOING_ON : 25;
}

static int64_t bytes_of(const recipe *r, int n, int64_t epochs)
{
    sender x[THREADS_MAX];
    const sender like = { .shards = r->shards, .batch = travelling(r), .epochs = epochs };
    send_together(x, n, r, &like);
    return x[0].bytes;
}

static void what_travels_is_what_was_planned(void **unused)
{
    enum { AT_THE_END = 2 * 9 * sizeof(int64_t) }; /* two agreements close an epoch */
    static const recipe stateful = { "rows that go on", going_on, KEEL_FLOAT32, NULL, "adam",
                                     KEEL_KEEP,         GOING_ON, 16,           false };
    (void)unused;
    for (int k = 0; k < 4; k++) {
        const int n = 2 + k % 2;
        const recipe *r = k < 2 ? &recipes[0] : &stateful;
        const int batch = travelling(r), steps = ROWS / batch;
        keel_plan p;
        keel_strategy *s;
        keel_model *m = model_of(r);
        must(keel_strategy_create(&s, "cpu:0"));
        must(keel_strategy_reproducible(s, r->shards));
        must(keel_plan_processes(&p, m, s, n, ROWS, batch, KEEL_KEEP, NULL));
        const int64_t step = p.sent_gradients + p.sent_statistics + p.sent_others;
        const int64_t epoch = bytes_of(r, n, 2) - bytes_of(r, n, 1);
        assert_int_equal(epoch, steps * step + (n - 1) * AT_THE_END);
        int64_t rows = 0;
        for (int q = 0; q < n; q++) rows += p.process_full[q];
        assert_int_equal(rows, batch);
        keel_plan_free(&p);
        assert_int_equal(keel_plan_processes(&p, m, s, 17, ROWS, batch, KEEL_KEEP, NULL),
                         KEEL_EARG);
        assert_int_equal(keel_plan_processes(&p, m, s, 0, ROWS, batch, KEEL_KEEP, NULL), KEEL_EARG);
        keel_strategy_destroy(s);
        keel_model_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_process),
        cmocka_unit_test(last_steps_may_have_fewer_rows_than_processes),
        cmocka_unit_test(a_process_reads_its_own_rows_alone),
        cmocka_unit_test(what_travels_is_what_was_planned),
        cmocka_unit_test(a_process_that_is_lost_at_any_exchange_is_named_by_all),
        cmocka_unit_test(a_process_that_is_lost_between_rounds_is_named_by_all),
        cmocka_unit_test(late_messages_change_nothing),
        cmocka_unit_test(a_failure_of_one_process_is_that_of_all),
        cmocka_unit_test(processes_of_unlike_runs_are_refused_before_one_waits),
        cmocka_unit_test(callbacks_that_set_something_set_it_in_all_processes),
        cmocka_unit_test(a_process_that_stops_stops_all_before_the_next_step),
        cmocka_unit_test(common_instructions_are_the_least_of_all),
        cmocka_unit_test(time_in_which_a_process_was_stopped_is_not_silence),
        cmocka_unit_test(who_copies_what_has_come_does_not_sleep),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
