/* Several processes have the bits of one: weights, the optimizer's state, BatchNorm's statistics,
 * logs and predictions, for any number of processes and lanes. Processes are threads here. */
#include "process_works.h"
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
                          .timeout = SLOW ? 60 : 20,
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
            const bool all_counts = i == 0 || (r->network == going_on && !SLOW);
            if (!all_counts && (c + i) % (SLOW ? 5 : 2)) continue;
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

/* ---- what goes wrong ------------------------------------------------------------------------- */

enum { TROUBLED = 3 };

typedef struct trouble {
    process p[TROUBLED];
    thread_group group;
} trouble;

static void begin_trouble(trouble *t, const recipe *r, double timeout)
{
    memset(t, 0, sizeof *t);
    thread_group_begin(&t->group, TROUBLED);
    for (int i = 0; i < TROUBLED; i++)
        t->p[i] = (process){ .recipe = r,
                             .group = thread_group_of(&t->group, i),
                             .data = rows_of(r),
                             .outcome.model = model_of(r),
                             .lanes = 1 + i % 2,
                             .workers = 1,
                             .timeout = timeout };
}

static void end_trouble(trouble *t)
{
    for (int i = 0; i < TROUBLED; i++) {
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
    for (int i = 0; i < TROUBLED; i++) {
        const outcome *o = &t->p[i].outcome;
        if (i == but) continue;
        if (first && o->model->compiled.iterations == first->model->compiled.iterations)
            compare_weights(first, o, t->p[i].recipe, "a process after a failure");
        first = o;
    }
}

enum how { CANNOT_START, SILENT, CANNOT_END, HOWS };

/* Process i names the one that is lost, or one that has named it: who sends nothing to i in an
 * exchange is not missed by it, but by another process, for which it then waits. */
static bool names(const trouble *t, int i, const char *lost)
{
    char another[64];
    bool named = strstr(t->p[i].error, lost);
    for (int q = 0; q < TROUBLED && !named; q++) {
        snprintf(another, sizeof another, "process %d (here) has not answered", q);
        named = strstr(t->p[i].error, another) && strstr(t->p[q].error, lost);
    }
    return named;
}

/* A process falls silent at its k-th exchange, or cannot begin or end it. */
static void fall(const recipe *r, int who, int k, enum how how, int exchanges)
{
    trouble t;
    char name[64];
    begin_trouble(&t, r, SLOW ? 2 : 0.25);
    struct thread_member *m = &t.group.member[who];
    if (how == SILENT) m->mute_at = k;
    if (how == CANNOT_START) m->fail_at = k;
    if (how == CANNOT_END) m->test_fails_at = k;
    snprintf(name, sizeof name, "process %d (here) has not answered", who);
    run_all(t.p, TROUBLED);
    for (int i = 0; i < TROUBLED; i++) {
        /* what it sent may be all that the others needed, if it was the last */
        if (t.p[i].status == KEEL_OK && how == CANNOT_END && k == exchanges && i != who) continue;
        if (t.p[i].status != KEEL_EREMOTE)
            fail_msg("exchange %d of %d: process %d ends with %s: %s", k, exchanges, i,
                     keel_status_name(t.p[i].status), t.p[i].error);
        if (i != who && !names(&t, i, name))
            fail_msg("exchange %d of %d: process %d does not name process %d: %s", k, exchanges, i,
                     who, t.p[i].error);
    }
    models_are_of_whole_steps(&t, who);
    end_trouble(&t);
}

static const recipe small_work = { "a small work", products, KEEL_FLOAT32, NULL, "adam",
                                   KEEL_KEEP,      40,       16,           false };

static void a_process_that_is_lost_at_any_exchange_is_named_by_all(void **unused)
{
    (void)unused;
    trouble t;
    begin_trouble(&t, &small_work, 20);
    run_all(t.p, TROUBLED);
    const int all = t.group.member[1].exchanges;
    for (int i = 0; i < TROUBLED; i++) assert_int_equal(t.p[i].status, KEEL_OK);
    end_trouble(&t);
    assert_true(all > 30);
    /* not the last: who sends nothing there has all that it needs */
    for (int k = 1; k < all; k += k < 20 && !SLOW ? 1 : 11)
        fall(&small_work, k % 4 ? 1 : k / 4 % 2 * 2, k, (enum how)(k % HOWS), all);
    fall(&small_work, 1, all, CANNOT_END, all);
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
    begin_trouble(&t, &small_work, 20);
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
    begin_trouble(&t, &small_work, 20);
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

/* A step that a process stops before is not counted by any. */
static void a_process_that_stops_stops_all_before_the_next_step(void **unused)
{
    (void)unused;
    for (int who = 0; who < TROUBLED; who++) {
        trouble t;
        begin_trouble(&t, &small_work, 20);
        t.p[who].stops_at = 1;
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
    begin_trouble(&t, &small_work, 20);
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

/* A fit alone, and the bytes that the process has sent. */
typedef struct sender {
    process of;
    int64_t epochs, bytes;
} sender;

static int travelling(const recipe *r)
{
    return r->network == going_on ? GOING_ON : 25;
}

static void *send_all(void *context)
{
    sender *x = context;
    process *p = &x->of;
    keel_strategy *s = NULL;
    keel_cores real, cores = { .n = 1 };
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = travelling(p->recipe),
                                 .epochs = x->epochs };
    p->status = keel_cores_find(&real);
    cores.os[0] = real.os[0];
    if (p->status >= 0) p->status = keel_strategy_create_group_on(&s, "cpu:0", &p->group, &cores);
    if (s) s->comm->bucket_bytes = KEEL_BUCKET_LEAST; /* as the plan, which knows no connection */
    if (p->status >= 0) p->status = keel_strategy_reproducible(s, p->recipe->shards);
    if (p->status >= 0) p->status = keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history);
    if (p->status < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    if (s) x->bytes = s->comm->bytes;
    keel_strategy_destroy(s);
    return NULL;
}

static int64_t bytes_of(const recipe *r, int n, int64_t epochs)
{
    thread_group group;
    sender x[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    thread_group_begin(&group, n);
    for (int i = 0; i < n; i++) {
        x[i] = (sender){ .of = { .recipe = r,
                                 .group = thread_group_of(&group, i),
                                 .data = rows_of(r),
                                 .outcome.model = model_of(r) },
                         .epochs = epochs };
        assert_int_equal(pthread_create(&thread[i], NULL, send_all, &x[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        if (x[i].of.status < 0) fail_msg("process %d: %s", i, x[i].of.error);
        forget(&x[i].of.outcome);
        keel_dataset_destroy(x[i].of.data);
    }
    thread_group_end(&group);
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
        cmocka_unit_test(a_process_reads_its_own_rows_alone),
        cmocka_unit_test(what_travels_is_what_was_planned),
        cmocka_unit_test(a_process_that_is_lost_at_any_exchange_is_named_by_all),
        cmocka_unit_test(late_messages_change_nothing),
        cmocka_unit_test(a_failure_of_one_process_is_that_of_all),
        cmocka_unit_test(a_process_that_stops_stops_all_before_the_next_step),
        cmocka_unit_test(common_instructions_are_the_least_of_all),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
