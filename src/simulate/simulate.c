/* See keel_simulate in keel/simulate.h. */
#include "base/memory.h"
#include "keel/process_group.h"
#include "simulate/absent.h"
#include "simulate/copies.h"
#include "simulate/measure.h"
#include "train/strategy.h"
#include <stdio.h>

typedef struct work {
    keel_model *model;
    const keel_simulate_options *o;
    keel_simulation out;
    keel_noticed noticed;
    keel_cores *cores; /* [at_once] */
} work;

/* ---- what is asked --------------------------------------------------------------------------- */

static keel_status check(const keel_simulate_options *o)
{
    const int per = o->processes_per_machine;
    int64_t most = 1; /* processes */
    if (o->machine_count < 1 || !o->machines)
        return keel_fail(KEEL_EARG, "simulate: no number of machines is given");
    if (per < 0 || per > KEEL_PROCESSES_MAX)
        return keel_fail(KEEL_EARG, "simulate: %d processes per machine; 1 to %d are possible", per,
                         KEEL_PROCESSES_MAX);
    if ((o->batch_size > 0) == (o->process_batch_size > 0) || o->batch_size < 0 ||
        o->process_batch_size < 0)
        return keel_fail(KEEL_EARG, "simulate: give the rows of a step either over all processes "
                                    "or for each of them");
    if (!(o->seconds >= 0 && o->seconds <= 3600))
        return keel_fail(KEEL_EARG, "simulate: %g seconds of measuring; 0 to 3600 are possible",
                         o->seconds);
    for (int i = 0; i < o->machine_count; i++) {
        const int64_t n = (int64_t)o->machines[i] * (per ? per : 1);
        if (o->machines[i] < 1 || n > KEEL_PROCESSES_MAX)
            return keel_fail(KEEL_EARG,
                             "simulate: %d machines with %d %s each; 1 to %d processes are "
                             "possible",
                             o->machines[i], per ? per : 1, per > 1 ? "processes" : "process",
                             KEEL_PROCESSES_MAX);
        if (n > most) most = n;
        if ((o->batch_size ? o->batch_size : o->process_batch_size * n) > INT32_MAX ||
            o->process_batch_size > INT32_MAX)
            return keel_fail(KEEL_EARG, "simulate: a step has at most %d rows", INT32_MAX);
    }
    if ((unsigned)o->compress > KEEL_COMPRESS_BF16)
        return keel_fail(KEEL_EARG,
                         "simulate: compress is %d; it must be KEEL_COMPRESS_NONE or _BF16",
                         (int)o->compress);
    if (o->compress && most == 1)
        return keel_fail(KEEL_EARG,
                         "simulate: compress %s is for several processes: of one, no gradients "
                         "travel; leave it out",
                         keel_compress_name(o->compress));
    if (o->shard_optimizer && most == 1)
        return keel_fail(KEEL_EARG,
                         "simulate: sharding the optimizer is for several processes: one "
                         "has all of its state; leave it out");
    return keel_network_check(&o->network);
}

/* The processes of a machine divide its cores; those without a core of their own are not run. */
static keel_status divide_cores(work *w)
{
    keel_simulation *out = &w->out;
    keel_cores all;
    KEEL_TRY(keel_cores_find(&all));
    const int n = out->processes_per_machine;
    out->at_once = n < all.n ? n : all.n;
    w->cores = keel_calloc((size_t)out->at_once, sizeof *w->cores);
    if (!w->cores) return KEEL_ENOMEM;
    for (int i = 0; i < out->at_once; i++)
        for (int k = all.n * i / out->at_once; k < all.n * (i + 1) / out->at_once; k++)
            w->cores[i].os[w->cores[i].n++] = all.os[k];
    if (n > all.n)
        snprintf(out->note, sizeof out->note,
                 "this machine has %d cores for %d processes: only %d ran at once, so what they "
                 "take from each other is not in the times",
                 all.n, n, out->at_once);
    return KEEL_OK;
}

/* ---- one number of machines ------------------------------------------------------------------ */

static keel_status plan_memory(const work *w, keel_simulated *p)
{
    keel_strategy *s = NULL;
    keel_plan plan = { 0 };
    KEEL_TRY(keel_strategy_create_on(&s, w->o->devices, &w->cores[0]));
    keel_status status = w->o->shards ? keel_strategy_reproducible(s, w->o->shards) : KEEL_OK;
    if (status >= 0 && p->processes > 1) status = keel_strategy_compress(s, w->o->compress);
    if (status >= 0 && p->processes > 1)
        status = keel_strategy_shard_optimizer(s, w->o->shard_optimizer);
    if (status >= 0)
        status = keel_plan_processes(&plan, w->model, s, p->processes, p->batch_size, p->batch_size,
                                     KEEL_KEEP, w->o->inputs);
    p->memory_bytes = plan.total_bytes;
    keel_plan_free(&plan);
    keel_strategy_destroy(s);
    return status;
}

/* The job on so many machines, with what is known before anything runs. */
static keel_status lay_out(const work *w, int machines, keel_simulated *out)
{
    const int n = machines * w->out.processes_per_machine;
    *out = (keel_simulated){ .machines = machines,
                             .processes = n,
                             .batch_size = w->o->batch_size ? w->o->batch_size
                                                            : w->o->process_batch_size * n };
    return plan_memory(w, out);
}

static keel_status predict(work *w, keel_simulated *p)
{
    const keel_measuring measuring = {
        .model = w->model,
        .options = w->o,
        .network = &w->out.network,
        .noticed = &w->noticed,
        .processes = p->processes,
        .per_machine = w->out.processes_per_machine,
        .batch_size = p->batch_size,
        .at_once = w->out.at_once,
        .cores = w->cores,
    };
    if (w->o->progress) {
        const keel_status s = w->o->progress(w->o->context, p->machines);
        if (s != KEEL_OK) return s;
    }
    KEEL_TRY(keel_measure_steps(&measuring, p));
    p->rows_per_second = (double)p->batch_size / p->step_seconds;
    return KEEL_OK;
}

/* What is refused is refused before the first measurement. KEEL_END: told to stop. */
static keel_status predict_all(work *w)
{
    keel_simulation *out = &w->out;
    const int n = out->count = w->o->machine_count;
    KEEL_TRY(lay_out(w, 1, &out->one));
    for (int i = 0; i < n; i++) KEEL_TRY(lay_out(w, w->o->machines[i], &out->point[i]));
    KEEL_TRY(keel_absent_notice(&w->noticed));
    if (out->network.local_bytes_per_second == 0)
        KEEL_TRY(keel_copies_measure(&out->network.local_bytes_per_second, w->cores[0].os[0],
                                     w->cores[out->at_once - 1].os[0]));
    keel_status s = predict(w, &out->one);
    out->one.efficiency = 1;
    for (int i = 0; i < n && s == KEEL_OK; i++) {
        keel_simulated *p = &out->point[i];
        if (p->machines == 1)
            *p = out->one;
        else
            s = predict(w, p);
        p->efficiency = p->rows_per_second / (p->machines * out->one.rows_per_second);
    }
    return s;
}

keel_status keel_simulate(keel_simulation *out, keel_model *m, const keel_simulate_options *o)
{
    if (!out || !m || !o || o->size != sizeof *o)
        return keel_fail(KEEL_EARG, "simulate: out, model and options must be given, and options "
                                    "begin with KEEL_SIMULATE_OPTIONS");
    KEEL_TRY(check(o));
    work w = { .model = m, .o = o, .out.network = o->network };
    w.out.processes_per_machine = o->processes_per_machine ? o->processes_per_machine : 1;
    w.out.point = keel_calloc((size_t)o->machine_count, sizeof *w.out.point);
    keel_status s = w.out.point ? divide_cores(&w) : KEEL_ENOMEM;
    const keel_row_states kept = m->row_states; /* as they were, after the made-up rows, too */
    m->row_states = (keel_row_states){ 0 };
    if (s >= 0) s = predict_all(&w);
    keel_row_states_free(&m->row_states);
    m->row_states = kept;
    keel_free(w.cores);
    if (s != KEEL_OK)
        keel_simulation_free(&w.out);
    else
        *out = w.out;
    return s;
}

void keel_simulation_free(keel_simulation *s)
{
    if (!s) return;
    keel_free(s->point);
    *s = (keel_simulation){ 0 };
}
