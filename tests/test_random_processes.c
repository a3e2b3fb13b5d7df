/* Fits drawn by chance, in two to five processes drawn by chance: each has stand-ins of any kind,
 * cores, or both. Weights, logs and predictions are those of one device, to the bit where steps are
 * reproducible, else those of a core; and all processes have the same. Processes are threads here.
 *
 * `test_random_processes FROM COUNT` tries that many from one number on (random_seeds.h). */
#include <unistd.h>
#include "random_outcome.h"
#include "random_seeds.h"
#include "sweep.h"
#include "thread_processes.h"

enum { LONGEST = 240, PROCESSES = 5 };

static char trouble[8 * TEXT];
static bool prints; /* the graphs that fail */

typedef struct process {
    fitting *f;
    machine m;
    keel_process_group group;
    bool unequal;                        /* of all processes: some may have unequal shares */
    bool together, shards_state, rounds; /* together: in a group; rounds: gradients to bfloat16 */
    outcome o;
} process;

static keel_status open_process(process *p, opened *x)
{
    open_standins(&p->m, x);
    const keel_status s =
        p->together ? keel_strategy_create_group_beside(&x->strategy, x->device, p->m.n,
                                                        p->m.beside, &p->group)
                    : keel_strategy_create_beside(&x->strategy, x->device, p->m.n, p->m.beside);
    if (s < 0) return s;
    keel_strategy_recompute(x->strategy, p->f->recompute);
    if (p->together && p->unequal)
        KEEL_TRY(keel_strategy_share(x->strategy, p->m.unequal ? p->m.share : NULL,
                                     keel_strategy_devices(x->strategy)));
    if (p->rounds) KEEL_TRY(keel_strategy_compress(x->strategy, KEEL_COMPRESS_BF16));
    if (p->shards_state) KEEL_TRY(keel_strategy_shard_optimizer(x->strategy, true));
    return p->f->shards ? keel_strategy_reproducible(x->strategy, p->f->shards) : KEEL_OK;
}

static keel_status run(process *p, keel_strategy *s)
{
    fitting *f = p->f;
    outcome *o = &p->o;
    keel_fit_options with = f->o;
    keel_callback *own[3] = { NULL };
    if (f->callback) must(keel_callback_parse(&own[0], f->callback));
    if (f->second) must(keel_callback_parse(&own[own[0] != NULL], f->second));
    with.callbacks = (const keel_callback *const *)own;
    o->status = keel_fit(o->model, s, f->rows.data, &with, &o->history);
    for (int i = 0; i < 2; i++) keel_callback_destroy(own[i]);
    if (o->status < 0) return o->status;
    with.callbacks = NULL;
    with.end = KEEL_KEEP;
    o->scored = keel_evaluate(o->model, s, f->rows.data, &with, &o->logs);
    if (o->scored >= 0)
        o->scored = keel_predict(o->model, s, f->held_out.data, &with, &o->predicted);
    return o->scored;
}

static void *live(void *context)
{
    process *p = context;
    opened x;
    p->group.timeout = PATIENT;
    p->o.status = open_process(p, &x);
    keel_status s = p->o.status;
    if (s >= 0) s = run(p, x.strategy);
    if (s < 0) snprintf(p->o.text, sizeof p->o.text, "%s", keel_error());
    close_opened(&x, &p->m, true);
    return NULL;
}

static void make(process *p, fitting *f, machine m)
{
    *p = (process){ .f = f, .m = m };
    must(make_model(f, &p->o.model));
    p->o.there = true;
}

/* Of stand-ins, of cores, or of both, in each process. */
static machine draw_part(void)
{
    machine m = draw_machine();
    m.n = 1 + m.n % 3;
    if (percent(25)) {
        m.n = 0;
        m.beside = percent(50) ? "cpu:0" : "cpu:0-1";
    } else if (percent(60))
        m.beside = NULL;
    return m;
}

static bool wrong(const process *p, int i, int n, const char *what)
{
    char fits[TEXT], on[TEXT];
    int at;
    describe(p[i].f, fits);
    at = snprintf(trouble, sizeof trouble, "seed %llu: process %d of %d%s: %s: %s\n  %s",
                  (unsigned long long)p[i].f->g.seed, i, n,
                  p[i].shards_state ? ", parts of the optimizer"
                  : p[i].rounds     ? ", gradients rounded"
                                    : "",
                  what, why, fits);
    for (int q = 0; q < n; q++) {
        describe_machine(&p[q].m, on);
        at += snprintf(trouble + at, sizeof trouble - (size_t)at, "\n  on %s", on);
    }
    return false;
}

static int n_refused, n_parts;

/* A group of processes has what one device has; of cores alone, whose statistics are merged
 * otherwise, what one core has. */
static bool try_group(fitting *f, const outcome *device, const outcome *core)
{
    process p[PROCESSES];
    thread_group group;
    bool fine = true;
    const int n = 2 + chance(PROCESSES - 1);
    const outcome *one = core;
    const bool unequal = percent(40);
    const bool shards_state = percent(20), rounds = f->shards == 0 && percent(20);
    thread_group_begin(&group, n);
    for (int q = 0; q < n; q++) {
        make(&p[q], f, draw_part());
        p[q].group = thread_group_of(&group, q);
        p[q].together = true;
        p[q].shards_state = shards_state;
        p[q].unequal = unequal;
        p[q].m.unequal = unequal && p[q].m.unequal;
        p[q].rounds = rounds;
        if (p[q].m.n > 0) one = device;
    }
    live_together(live, p, sizeof *p, n);
    const bool refused = p[0].o.status == KEEL_EARG || p[0].o.status == KEEL_EUNSUP;
    for (int q = 0; q < n && fine; q++) {
        if (refused && p[q].o.status == p[0].o.status) continue;
        if (!rounds && !same(one, &p[q].o, f->shards > 0))
            fine = wrong(p, q, n, "beside one device");
        if (fine && p[0].o.status >= 0 && !same_weights(&p[0].o, &p[q].o, true))
            fine = wrong(p, q, n, "beside the first process");
    }
    n_refused += refused;
    n_parts += shards_state && !refused;
    if (fine && *fault) fine = wrong(p, 0, n, fault);
    *fault = 0;
    for (int q = 0; q < n; q++) forget(&p[q].o);
    thread_group_end(&group);
    return fine;
}

static bool try(uint64_t seed)
{
    static const machine core = { .beside = "cpu:0" }, device = { .n = 1, .bucket_bytes = 256 };
    fitting f;
    keel_model *m;
    process one[2];
    alarm(LONGEST);
    if (draw_fitting(&f, seed) < 0) fail_msg("%s", keel_error());
    if (make_model(&f, &m) < 0) { /* as an optimizer that has no such argument */
        free_fitting(&f);
        return true;
    }
    keel_model_destroy(m);
    for (int i = 0; i < 2; i++) {
        make(&one[i], &f, i == 0 && f.shards ? device : core);
        live(&one[i]);
    }
    bool fine = true;
    for (int k = 0; k < 2 && fine; k++) fine = try_group(&f, &one[0].o, &one[1].o);
    if (!fine && prints) print_graph(&f.g);
    for (int i = 0; i < 2; i++) forget(&one[i].o);
    free_fitting(&f);
    alarm(0);
    return fine;
}

static int prepare(void **unused)
{
    (void)unused;
    make_kinds();
    return 0;
}

static void a_fit_in_any_processes_is_that_of_one(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= (uint64_t)thin(120, 30, 8); seed++)
        if (!try(seed)) fail_msg("%s", trouble);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest test[] = {
        cmocka_unit_test(a_fit_in_any_processes_is_that_of_one),
    };
    if (argc < 3) return cmocka_run_group_tests(test, prepare, NULL);
    prints = true;
    prepare(NULL);
    const int bad = try_seeds(argv, try, trouble);
    printf("%d were refused; %d kept parts of the optimizer\n", n_refused, n_parts);
    return bad > 0;
}
