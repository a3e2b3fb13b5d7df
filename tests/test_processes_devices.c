/* Devices of several processes have the bits of one: each process has lanes on devices, or on
 * devices and cores, and the host of each moves the weights. Processes are threads here, and
 * devices are stand-ins. */
#include "reproducible_works.h"
#include "keel/share.h"
#include "sweep.h"
#include "thread_processes.h"
#include "standin.h"

enum { DEVICES = 4 }; /* of one process */

typedef struct process {
    const recipe *recipe;
    keel_process_group group;
    const keel_device_type *type; /* of its devices; NULL: it has cores alone */
    const char *beside;           /* cores behind them; NULL: none */
    keel_device *device[DEVICES];
    int n;
    keel_dataset *data;
    outcome outcome;
    double timeout;
    bool measured;        /* as test_processes.c has it */
    bool plain;           /* plain C everywhere, so that cores and devices round alike */
    bool free;            /* of the order in which gradients are added */
    int fail_at, hang_at; /* of its first device: see standin_device.h */
    int row_us;           /* of all: the same */
    bool shared;          /* by their speed */
    int64_t rows[2];      /* of its first devices in a step */
    int share;            /* of the first */
    int sums, moves;      /* that its devices have made */
    int calls, given;     /* of its first device */
    keel_status status;
    char error[1024];
} process;

static keel_status open_process(keel_strategy **out, process *p)
{
    char cores[32];
    snprintf(cores, sizeof cores, p->n > 1 ? "cpu:0-%d" : "cpu:%d", p->n - 1);
    if (!p->type) return keel_strategy_create_group_beside(out, NULL, 0, cores, &p->group);
    for (int i = 0; i < p->n; i++) {
        p->device[i] = standin_open(p->type, i);
        standin_of(p->device[i])->row_us = p->row_us;
        if (p->shared) snprintf(p->device[i]->kind, sizeof p->device[i]->kind, "%d", p->row_us);
    }
    standin_of(p->device[0])->fail_at = p->fail_at;
    standin_of(p->device[0])->hang_at = p->hang_at;
    if (p->hang_at) standin_of(p->device[0])->base.patience = 0.2;
    return keel_strategy_create_group_beside(out, p->device, p->n, p->beside, &p->group);
}

static void close_devices(process *p)
{
    for (int i = 0; p->type && i < p->n; i++) {
        const standin *s = standin_of(p->device[i]);
        p->sums += s->sums;
        p->moves += s->moves;
        if (i == 0) p->calls = s->calls, p->given = s->given;
        if ((s->allocations || s->tapes) && !s->lost)
            snprintf(p->error, sizeof p->error, "%s: memory is left", s->base.name);
        if (s->clocks.reports > 0)
            snprintf(p->error, sizeof p->error, "%s: %s", s->base.name, s->clocks.first);
        p->device[i]->type->close(p->device[i]);
    }
}

static keel_status run(process *p, keel_strategy *s)
{
    const keel_fit_options o = { KEEL_FIT_OPTIONS, .batch_size = p->recipe->batch_size, .epochs = 2,
                                 .end = p->recipe->end, .reference_kernels = p->plain };
    if (p->shared)
        KEEL_TRY(keel_strategy_share_by_speed(s, p->outcome.model, p->recipe->batch_size, NULL));
    for (int i = 0; i < 2; i++) p->rows[i] = keel_strategy_rows(s, i, p->recipe->batch_size);
    p->share = keel_strategy_share_of(s, 0);
    if (!p->free) KEEL_TRY(keel_strategy_reproducible(s, p->recipe->shards));
    KEEL_TRY(keel_fit(p->outcome.model, s, p->data, &o, &p->outcome.history));
    KEEL_TRY(keel_evaluate(p->outcome.model, s, p->data, &o, &p->outcome.logs));
    return keel_predict(p->outcome.model, s, p->data, &o, &p->outcome.predicted);
}

static void *live(void *context)
{
    process *p = context;
    keel_strategy *s = NULL;
    p->group.timeout = p->timeout;
    p->status = open_process(&s, p);
    if (s && s->comm && !p->measured) s->comm->bucket_bytes = 0;
    if (p->status >= 0) p->status = run(p, s);
    if (p->status < 0) snprintf(p->error, sizeof p->error, "%s", keel_error());
    keel_strategy_destroy(s);
    close_devices(p);
    return NULL;
}

typedef struct part {
    const keel_device_type *type; /* as in process, as the next two */
    int n;
    const char *beside;
} part;

static bool has_cores(const part *parts, int n)
{
    for (int i = 0; i < n; i++)
        if (!parts[i].type || parts[i].beside) return true;
    return false;
}

typedef struct gathering {
    int n;
    process p[THREADS_MAX];
    thread_group group;
} gathering;

static void prepare(gathering *g, const recipe *r, const part *parts, int n, bool free)
{
    memset(g, 0, sizeof *g);
    g->n = n;
    thread_group_begin(&g->group, n);
    for (int i = 0; i < n; i++)
        g->p[i] = (process){ .recipe = r,
                             .group = thread_group_of(&g->group, i),
                             .data = rows_of(r),
                             .outcome.model = model_of(r),
                             .type = parts[i].type,
                             .beside = parts[i].beside,
                             .n = parts[i].n,
                             .plain = has_cores(parts, n),
                             .free = free,
                             .measured = n % 2 == 0,
                             .timeout = PATIENT };
}

static void gather(gathering *g, const recipe *r, const part *parts, int n, bool free)
{
    prepare(g, r, parts, n, free);
    live_together(live, g->p, sizeof *g->p, n);
}

static void part_with(gathering *g)
{
    for (int i = 0; i < g->n; i++) {
        assert_true(g->group.member[i].closed);
        forget(&g->p[i].outcome);
        keel_dataset_destroy(g->p[i].data);
    }
    thread_group_end(&g->group);
}

/* Of one device. */
static outcome alone(const recipe *r, bool plain)
{
    process p = { .recipe = r, .outcome.model = model_of(r), .data = rows_of(r), .plain = plain };
    keel_device *device = standin_open(&standin_runs, 0);
    keel_strategy *s;
    must(keel_strategy_create_devices(&s, &device, 1));
    must(run(&p, s));
    keel_strategy_destroy(s);
    device->type->close(device);
    keel_dataset_destroy(p.data);
    return p.outcome;
}

static const struct {
    const char *name;
    int n;
    part part[5];
} machines[] = {
    { "two processes with a device each", 2, { { &standin_runs, 1 }, { &standin_runs, 1 } } },
    { "three processes, of which one has more devices",
      3,
      { { &standin_runs, 1 }, { &standin_stores, 3 }, { &standin_runs, 2 } } },
    { "devices in one process, and cores in the other", 2, { { &standin_runs, 2 }, { NULL, 2 } } },
    { "cores in the first process", 3, { { NULL, 1 }, { &standin_runs, 1 }, { NULL, 3 } } },
    { "a device and a core in each",
      2,
      { { &standin_runs, 1, "cpu:0" }, { &standin_stores, 1, "cpu:0" } } },
    { "five processes",
      5,
      { { &standin_runs, 1 },
        { &standin_stores, 2 },
        { &standin_runs, 3 },
        { NULL, 1 },
        { &standin_runs, 4 } } },
};

enum { MACHINES = sizeof machines / sizeof *machines };

/* Whether a machine runs a work: every lane has a shard, and cores and devices have the same bits.
 */
static bool can_run(const recipe *r, size_t m)
{
    int lanes = 0;
    for (int k = 0; k < machines[m].n; k++)
        lanes += machines[m].part[k].n + (machines[m].part[k].beside != NULL);
    return lanes <= r->shards &&
           (r->dtype != KEEL_FLOAT64 || !has_cores(machines[m].part, machines[m].n));
}

static void run_on_machine(const recipe *r, size_t m, outcome one[2])
{
    gathering g;
    gather(&g, r, machines[m].part, machines[m].n, false);
    const bool plain = g.p[0].plain;
    if (!one[plain].model) one[plain] = alone(r, plain);
    for (int k = 0; k < g.n; k++) {
        char how[96];
        if (g.p[k].error[0])
            fail_msg("%s, %s, process %d: %s", r->name, machines[m].name, k, g.p[k].error);
        snprintf(how, sizeof how, "process %d of %s", k, machines[m].name);
        if ((g.p[k].moves > 0) == plain) fail_msg("%s: %d moves of %s", r->name, g.p[k].moves, how);
        compare(&one[plain], &g.p[k].outcome, r, how);
    }
    part_with(&g);
}

static void bits_are_those_of_one_device(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i += (size_t)thin(1, 1, 5)) {
        outcome one[2] = { { NULL } }; /* made when a machine needs it */
        for (size_t m = 0; m < MACHINES; m++)
            if (can_run(&recipes[i], m) && (i + m) % (size_t)thin(2, 4, 6) == 0)
                run_on_machine(&recipes[i], m, one);
        for (int k = 0; k < 2; k++)
            if (one[k].model) forget(&one[k]);
    }
}

/* Stand-ins add rank after rank, as their host does, so there the bits are the same. */
static void devices_of_a_process_add_up_what_it_sends(void **unused)
{
    static const char *const names[] = { "convolutions", "statistics both ways",
                                         "products",     "a table",
                                         "attention",    "deep" };
    static const part machine[2][3] = {
        { { &standin_runs, 2 }, { &standin_runs, 1 }, { &standin_runs, 3 } },
        { { &standin_sums, 2 }, { &standin_sums, 1 }, { &standin_sums, 3 } },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof names / sizeof *names; i += (size_t)thin(1, 2, 4))
        for (int n = 2; n <= 3; n += thin(1, 2, 2)) {
            gathering g[2];
            const recipe *r = recipe_of(names[i]);
            for (int k = 0; k < 2; k++) gather(&g[k], r, machine[k], n, true);
            for (int q = 0; q < n; q++) {
                const process *host = &g[0].p[q], *own = &g[1].p[q];
                if (host->error[0]) fail_msg("%s: %s", r->name, host->error);
                if (own->error[0]) fail_msg("%s: %s", r->name, own->error);
                if (own->n > 1 && own->sums == 0) fail_msg("%s: process %d: no sums", r->name, q);
                compare(&host->outcome, &own->outcome, r, "sums of devices");
                compare_weights(&own->outcome, &g[1].p[0].outcome, r, "another process");
            }
            part_with(&g[0]);
            part_with(&g[1]);
        }
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

enum { FAILING = 1 }; /* the process whose first device fails */

static const struct broken {
    const char *name;
    int n;
    part part[3];
    bool behind; /* nobody else has the weights of the device, so the process may go back */
} broken[] = {
    { "another device of the process goes on",
      3,
      { { &standin_runs, 1 }, { &standin_runs, 2 }, { &standin_stores, 1 } },
      false },
    { "it is the only device of the process",
      2,
      { { &standin_runs, 1 }, { &standin_runs, 1 } },
      true },
    { "hosts move the weights, since a process has cores",
      3,
      { { &standin_runs, 1 }, { &standin_runs, 1 }, { NULL, 1 } },
      false },
};

/* All end after the same step, and each tells of the device, and of the process if it is another.
 */
static void all_tell_of(const gathering *g, const struct broken *x, const char *how, int k)
{
    const keel_model *first = g->p[0].outcome.model;
    for (int q = 0; q < g->n; q++) {
        const process *p = &g->p[q];
        const int64_t steps = keel_model_steps_done(p->outcome.model);
        const bool fails = p->status == KEEL_EDEVICE || p->status == KEEL_ENOMEM;
        const bool names = q == FAILING || strstr(p->error, "process 1 (here)");
        if (!fails || !names || !strstr(p->error, "standin:0"))
            fail_msg("%s: %s %d, process %d: %s: %s", x->name, how, k, q,
                     keel_status_name(p->status), p->error);
        if (x->behind && q == FAILING && steps < keel_model_steps_done(first)) continue;
        compare_weights(&g->p[0].outcome, &p->outcome, p->recipe, "a failure in another process");
        assert_int_equal(steps, keel_model_steps_done(first));
    }
}

static int calls_until_the_end(const struct broken *x, const recipe *r, int *given)
{
    gathering g;
    gather(&g, r, x->part, x->n, false);
    for (int q = 0; q < x->n; q++)
        if (g.p[q].error[0]) fail_msg("%s, process %d: %s", x->name, q, g.p[q].error);
    const int calls = g.p[FAILING].calls;
    *given = g.p[FAILING].given;
    part_with(&g);
    return calls;
}

static void a_device_that_fails_ends_the_step_of_all(void **unused)
{
    const int runs = thin(24, 8, 2);
    const recipe *r = recipe_of("convolutions");
    (void)unused;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const struct broken *x = &broken[i];
        int failed = 0, given;
        const int calls = calls_until_the_end(x, r, &given);
        for (int k = 0; k < runs; k++) {
            const bool hangs = k % 4 == 3;
            gathering g;
            process *p = &g.p[FAILING];
            prepare(&g, r, x->part, x->n, false);
            *(hangs ? &p->hang_at : &p->fail_at) =
                1 + (int)((int64_t)((hangs ? given : calls) - 1) * k / runs);
            live_together(live, g.p, sizeof *g.p, x->n);
            if (p->status < 0) all_tell_of(&g, x, hangs ? "hangs at" : "fails at call", k);
            failed += p->status < 0;
            part_with(&g);
        }
        assert_true(failed >= runs - 1); /* the last call may be one that ends it */
    }
}

/* ---- on their way while devices compute ------------------------------------------------------ */

/* What a slow device has been asked for while it computed: exchanges that had begun by then. */
static struct {
    const struct thread_member *member;
    int event, exchanges; /* when the answer was last 'not yet' */
    int begun;            /* between two such answers, of a step */
} asked;

static int passed_seen(keel_device *d, int event)
{
    const int passed = standin_passed(d, event), exchanges = asked.member->exchanges;
    if (passed != 0) return passed;
    if (event > asked.event && asked.event > 0) asked.begun += exchanges - asked.exchanges;
    asked.event = event;
    asked.exchanges = exchanges;
    return passed;
}

static void gradients_travel_while_a_device_computes(void **unused)
{
    const recipe *r = recipe_of("deep");
    keel_device_type slow = standin_runs;
    const part parts[] = { { &standin_runs, 1 }, { &slow, 1 } };
    gathering g;
    (void)unused;
    slow.passed = passed_seen;
    prepare(&g, r, parts, 2, false);
    asked.member = &g.group.member[1];
    for (int q = 0; q < 2; q++) g.p[q].measured = false;
    g.p[1].row_us = 100;
    live_together(live, g.p, sizeof *g.p, 2);
    for (int q = 0; q < 2; q++) assert_int_equal(g.p[q].status, KEEL_OK);
    assert_true(asked.begun > 0);
    part_with(&g);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static void slow_devices_of_another_process_get_fewer_rows(void **unused)
{
    static const part parts[] = { { &standin_runs, 1 }, { &standin_runs, 2 } };
    const recipe *r = recipe_of("products");
    outcome one = alone(r, false);
    gathering g;
    (void)unused;
    prepare(&g, r, parts, 2, false);
    for (int q = 0; q < 2; q++) {
        g.p[q].shared = true;
        g.p[q].row_us = q ? 2000 : 200;
    }
    live_together(live, g.p, sizeof *g.p, 2);
    for (int q = 0; q < 2; q++) {
        const process *p = &g.p[q];
        if (p->error[0]) fail_msg("process %d: %s", q, p->error);
        compare(&one, &p->outcome, r, "shares by speed");
    }
    assert_int_equal(g.p[0].rows[0] + g.p[1].rows[0] + g.p[1].rows[1], r->batch_size);
    assert_int_equal(g.p[0].share, KEEL_SHARE_MAX);
    assert_in_range(g.p[1].share, 1, KEEL_SHARE_MAX / 2);
    assert_true(g.p[0].rows[0] > 2 * g.p[1].rows[0]);
    part_with(&g);
    forget(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_one_device),
        cmocka_unit_test(devices_of_a_process_add_up_what_it_sends),
        cmocka_unit_test(a_device_that_fails_ends_the_step_of_all),
        cmocka_unit_test(slow_devices_of_another_process_get_fewer_rows),
        cmocka_unit_test(gradients_travel_while_a_device_computes),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
