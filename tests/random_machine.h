/* Machines drawn by chance: stand-ins of one kind, cores beside them, and their shares. */
#ifndef TESTS_RANDOM_MACHINE_H
#define TESTS_RANDOM_MACHINE_H
#include "random_fit.h"
#include "standin.h"
#include "train/strategy.h"

enum { DEVICES = 8, LANES = 12, PATIENCE = 20 };

static char fault[2 * TEXT]; /* that a device has told of */

static const keel_device_type *kinds[] = {
    &standin_runs, &standin_stores, &standin_sums, NULL, NULL, NULL, NULL
};
static const char *const kind_names[] = { "runs",    "stores",   "sums",      "no move",
                                          "no fold", "no check", "no project" };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Stand-ins that cannot do something, for which the host does it. */
static void make_kinds(void)
{
    static keel_device_type lacks[KINDS];
    for (int i = 3; i < KINDS; i++) {
        lacks[i] = standin_runs;
        kinds[i] = &lacks[i];
    }
    lacks[3].move = NULL;
    lacks[4].fold = NULL;
    lacks[5].check = NULL;
    lacks[6].project = NULL;
    lacks[6].measure = NULL;
    lacks[6].factor = NULL;
    lacks[6].orthogonalize = NULL;
}

/* n stand-ins and cores beside them; n 0: one core. */
typedef struct machine {
    int n, kind, share[LANES];
    const char *beside; /* NULL: none */
    bool unequal, locks_nothing, refuses_tapes;
    int64_t bucket_bytes;
    int who, fail_at, hang_at; /* a device's call that fails */
    int fail_memory;           /* which request for memory fails; 0: none */
    double patience;
} machine;

static machine draw_machine(void)
{
    static const char *const cores[] = { "cpu:0", "cpu:0-1", "cpu:0,cpu:1,cpu:0", "cpu:1,cpu:0+2",
                                         "cpu:1,cpu:0,cpu:1,cpu:0" };
    machine m = { .n = 1 + chance(percent(50) ? 3 : DEVICES), .kind = chance(KINDS) };
    if (percent(40)) m.beside = cores[chance(sizeof cores / sizeof *cores)];
    m.unequal = percent(40);
    for (int i = 0; i < LANES; i++) m.share[i] = 1 + chance(percent(50) ? 2 : 6);
    m.locks_nothing = percent(10);
    m.refuses_tapes = percent(10);
    m.bucket_bytes = percent(50) ? 256 : (int64_t)16 << chance(14);
    m.patience = PATIENCE;
    return m;
}

static void describe_machine(const machine *m, char out[TEXT])
{
    int n = snprintf(out, TEXT, "%d devices (%s%s%s, buckets of %d) beside %s", m->n,
                     kind_names[m->kind], m->locks_nothing ? ", locks nothing" : "",
                     m->refuses_tapes ? ", no graphs" : "", (int)m->bucket_bytes,
                     m->beside ? m->beside : "none");
    for (int i = 0; m->unequal && i < LANES; i++)
        n += snprintf(out + n, (size_t)(TEXT - n), "%s%d", i ? ", " : ", shares ", m->share[i]);
    if (m->fail_at)
        n += snprintf(out + n, (size_t)(TEXT - n), ", call %d of %d fails", m->fail_at, m->who);
    if (m->hang_at)
        n += snprintf(out + n, (size_t)(TEXT - n), ", work %d of %d hangs", m->hang_at, m->who);
    if (m->fail_memory)
        snprintf(out + n, (size_t)(TEXT - n), ", request %d for memory fails", m->fail_memory);
}

typedef struct opened {
    keel_device *device[DEVICES];
    keel_strategy *strategy;
    int n;
} opened;

static void open_standins(const machine *m, opened *out)
{
    *out = (opened){ .n = m->n };
    for (int i = 0; i < m->n; i++) {
        standin *s = standin_of(out->device[i] = standin_open(kinds[m->kind], i));
        s->locks_nothing = m->locks_nothing;
        s->refuses_tapes = m->refuses_tapes;
        s->base.bucket_bytes = m->bucket_bytes;
    }
}

/* False: it cannot be, as shares that leave a device without shards. */
static inline bool open_machine(const machine *m, const fitting *f, opened *out)
{
    keel_cores cores = { .n = 3 }, own;
    must(keel_cores_find(&own));
    for (int i = 0; i < cores.n; i++) cores.os[i] = own.os[i % own.n];
    open_standins(m, out);
    if (m->n)
        must(keel_strategy_create_beside_on(&out->strategy, out->device, m->n, m->beside, &cores));
    else
        must(keel_strategy_create(&out->strategy, "cpu:0"));
    keel_strategy_recompute(out->strategy, f->recompute);
    if (m->n) must(keel_strategy_timeout(out->strategy, m->patience));
    const int lanes = keel_strategy_devices(out->strategy);
    keel_status s = KEEL_OK;
    if (m->n && m->unequal) s = keel_strategy_share(out->strategy, m->share, lanes);
    if (s >= 0 && f->shards) s = keel_strategy_reproducible(out->strategy, f->shards);
    return s >= 0;
}

static void close_opened(opened *x, const machine *m, bool looks)
{
    char on[TEXT], text[TEXT] = "";
    keel_strategy_destroy(x->strategy);
    for (int i = 0; i < x->n; i++) {
        const standin *s = standin_of(x->device[i]);
        if (s->clocks.reports > 0)
            snprintf(text, sizeof text, "%s: %s", s->base.name, s->clocks.first);
        else if (s->allocations || s->tapes)
            snprintf(text, sizeof text, "%s: %d allocations and %d graphs stay", s->base.name,
                     s->allocations, s->tapes);
        x->device[i]->type->close(x->device[i]);
    }
    if (!*text || !looks) return;
    describe_machine(m, on);
    snprintf(fault, sizeof fault, "%s\n  on %s", text, on);
}

#endif
