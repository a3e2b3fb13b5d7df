/* See measure.h. The processes of a machine share its memory and caches, so as many as there are
 * cores for run at the same time: the first is measured, the others only load the machine. Each is
 * a thread with its own devices. */
#include "simulate/measure.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/comm.h"
#include "graph/across.h"
#include "graph/buckets.h"
#include "simulate/absent.h"
#include "train/made_rows.h"
#include "train/step.h"
#include "train/strategy.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WARM = 2, LEAST = 3, MOST = 1000, PROFILED_MOST = 50, GROUPS = 9 };
enum { ROWS_BYTES = 32 << 20 }; /* of made-up rows: more than the caches of some cores */
#define ENOUGH_SECONDS 1.0
/* Small enough that weights stay as they are, and not 0, by which some optimizers divide. */
#define LEARNING_RATE 1e-6

typedef struct sample {
    double step, compute; /* seconds */
} sample;

typedef struct hall { /* what the processes that run here have in common */
    const keel_measuring *x;
    pthread_mutex_t making; /* models are compiled one at a time */
    atomic_int ready;
    atomic_bool stop;
} hall;

typedef struct process {
    hall *hall;
    int rank;
    pthread_t thread;
    keel_absent absent;
    keel_strategy *strategy;
    bool entered;
    keel_made_rows made;
    keel_trainer *trainer;
    keel_tally tally; /* of steps that nobody asks for */
    keel_timing *timing;
    keel_failure failure;
    atomic_int taken; /* of sample; once taken, a sample stays as it is */
    sample sample[MOST];
} process;

/* ---- a process ------------------------------------------------------------------------------- */

/* Seconds of an exchange of so many bytes with each other process. */
static double exchange_seconds(const keel_measuring *x, double each)
{
    const int near = x->per_machine < x->processes ? x->per_machine : x->processes;
    const int far = x->processes - near;
    const keel_load load = { .out = each * far,
                             .in = each * far,
                             .local_out = each * (near - 1),
                             .local_in = each * (near - 1),
                             .messages = 2 * (x->processes - 1),
                             .asks = far && each > x->network->eager };
    return load.messages * x->network->message + keel_load_copies(x->network, &load) +
           keel_load_seconds(x->network, &load, near);
}

/* As keel_comm_measure would find it on this network. */
static int64_t bucket_of(const keel_measuring *x)
{
    const double small = exchange_seconds(x, KEEL_COMM_SMALL);
    const double large = exchange_seconds(x, (double)keel_comm_large_each(x->processes));
    const double most = 1e9; /* so that ns are below 2^63 */
    return keel_comm_bucket((int64_t)(1e9 * fmin(small, most)), (int64_t)(1e9 * fmin(large, most)));
}

static keel_status open_devices(process *p)
{
    const keel_measuring *x = p->hall->x;
    const keel_simulate_options *o = x->options;
    p->absent = (keel_absent){ .rank = p->rank,
                               .count = x->processes,
                               .per_machine = x->per_machine,
                               .eager = x->network->eager,
                               .timeline = { x->network, x->noticed, x->per_machine } };
    const keel_process_group g = keel_absent_group(&p->absent);
    KEEL_TRY(keel_strategy_create_group_on(&p->strategy, o->devices, &g, &x->cores[p->rank]));
    if (p->strategy->comm) { /* one process is the baseline, of which nothing travels */
        p->absent.passing = &p->strategy->comm->passing;
        p->strategy->comm->bucket_bytes = bucket_of(x);
        KEEL_TRY(keel_strategy_compress(p->strategy, o->compress));
        KEEL_TRY(keel_strategy_shard_optimizer(p->strategy, o->shard_optimizer));
    }
    return o->shards ? keel_strategy_reproducible(p->strategy, o->shards) : KEEL_OK;
}

static keel_status compile(process *p)
{
    const keel_measuring *x = p->hall->x;
    const keel_trainer_options options = { .float32 = x->options->float32 };
    const keel_trainer_work none = { 0 };
    int64_t first, end;
    keel_lanes_rows(&p->strategy->lanes, x->batch_size, p->rank, &first, &end);
    KEEL_TRY(keel_made_rows_make_many(&p->made, x->model, x->batch_size, end, x->options->inputs,
                                      ROWS_BYTES));
    const keel_trainer_work train = { &p->made.pairing, x->batch_size };
    KEEL_TRY(keel_trainer_create(&p->trainer, x->model, p->strategy, &train, &none, &options));
    KEEL_TRY(keel_trainer_prepare(&p->trainer->train, &x->batch_size, 1));
    for (int k = 0; k < p->trainer->n_mover; k++) {
        p->trainer->mover[k].update.schedule = (keel_object){ 0 };
        p->trainer->mover[k].update.learning_rate = LEARNING_RATE;
    }
    return keel_tally_create(&p->tally, &p->trainer->train);
}

static keel_status begin(process *p)
{
    pthread_mutex_lock(&p->hall->making);
    keel_status s = open_devices(p);
    if (s >= 0) {
        keel_team_enter(p->strategy->team);
        p->entered = true;
        s = compile(p);
    }
    pthread_mutex_unlock(&p->hall->making);
    return s;
}

static void end(process *p)
{
    pthread_mutex_lock(&p->hall->making);
    keel_tally_free(&p->tally);
    keel_trainer_destroy(p->trainer);
    keel_timing_destroy(p->timing);
    if (p->entered) keel_team_leave(p->strategy->team);
    keel_strategy_destroy(p->strategy);
    keel_made_rows_free(&p->made);
    pthread_mutex_unlock(&p->hall->making);
}

/* Between tensors the flat range has gaps, which are 0 in each process, and are sent. What is made
 * up for the others has this process's gradients there. They would be sent in the next step, and
 * come back as more and more. */
static void clear_gaps(const keel_program *g)
{
    const keel_buckets *x = g->across ? g->across->buckets : NULL;
    if (!x) return;
    char *all = x->narrow ? (char *)x->narrow : g->workspace[0].host.grad;
    int64_t at = 0;
    for (int i = 0; i <= x->n_tile; i++) {
        const keel_tile *t = &x->tile[i < x->n_tile ? i : 0];
        if (i < x->n_tile && !g->schedule.reached[t->variable]) continue;
        const int64_t next = i < x->n_tile ? t->offset : g->n_grad;
        memset(all + at * x->element, 0, (size_t)((next - at) * x->element));
        at = next + t->count;
    }
}

static keel_status step(process *p)
{
    keel_made_rows_next(&p->made);
    keel_absent_begin(&p->absent);
    KEEL_TRY(keel_train_step(p->trainer, &p->made.batch, 0, &p->tally));
    keel_absent_end(&p->absent);
    clear_gaps(p->trainer->train.program);
    /* what is made up for the weights of the others is this process's own */
    if (p->trainer->sharded) keel_trainer_load(p->trainer);
    return KEEL_OK;
}

static keel_status timed_step(process *p)
{
    const int n = atomic_load(&p->taken);
    KEEL_TRY(step(p));
    if (n == MOST) return KEEL_OK;
    p->sample[n] = (sample){ p->absent.timeline.now, p->absent.timeline.computed };
    atomic_store(&p->taken, n + 1);
    return KEEL_OK;
}

/* One that loads the machine, and whose steps the measured one waits for. */
static void *accompany(void *context)
{
    process *p = context;
    keel_status s = begin(p);
    for (int i = 0; i < WARM && s >= 0; i++) s = step(p);
    if (s < 0) keel_failure_take(&p->failure, s);
    atomic_fetch_add(&p->hall->ready, 1);
    while (s >= 0 && !atomic_load(&p->hall->stop)) s = timed_step(p);
    if (s < 0 && p->failure.status >= 0) keel_failure_take(&p->failure, s);
    end(p);
    return NULL;
}

/* ---- the one that is measured ---------------------------------------------------------------- */

static int by_step(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

/* Processes of a machine wait for each other in each step, so the slowest of those that run here
 * counts. */
static sample slowest(const process *p, int i)
{
    sample most = p->sample[i];
    for (int q = 1; q < p->hall->x->at_once; q++) {
        const int n = atomic_load(&p[q].taken);
        const sample *other = n ? &p[q].sample[i % n] : &most;
        if (other->step > most.step) most = *other;
    }
    return most;
}

static sample mean_of(const process *p, int begin, int end)
{
    sample sum = { 0 };
    for (int i = begin; i < end; i++) {
        const sample one = slowest(p, i);
        sum.step += one.step / (end - begin);
        sum.compute += one.compute / (end - begin);
    }
    return sum;
}

/* An epoch takes the mean of its steps, late ones included. A group of steps is like an epoch, and
 * of groups the median counts, so that what disturbed one of them does not. */
static keel_status time_steps(process *p, keel_simulated *out)
{
    const keel_measuring *x = p->hall->x;
    const double enough = x->options->seconds > 0 ? x->options->seconds : ENOUGH_SECONDS;
    sample group[GROUPS];
    int n = 0;
    const double begin = keel_seconds();
    for (; n < LEAST || (n < MOST && keel_seconds() - begin < enough); n++) KEEL_TRY(timed_step(p));
    const int groups = n < GROUPS ? n : GROUPS;
    for (int i = 0; i < groups; i++) group[i] = mean_of(p, n * i / groups, n * (i + 1) / groups);
    qsort(group, (size_t)groups, sizeof *group, by_step);
    const sample *median = &group[groups / 2];
    out->step_seconds = median->step;
    out->compute_seconds = median->compute;
    out->exchange_seconds = median->step - median->compute;
    out->measured_steps = n;
    return KEEL_OK;
}

/* What travels, by the last step: it is the same in all. */
static void count_messages(const process *p, keel_simulated *out)
{
    out->exchanges = p->absent.exchanges;
    out->sent_bytes = p->absent.sent_bytes;
    out->messages = p->absent.messages;
    out->link_bytes = (int64_t)p->absent.link_bytes * p->hall->x->per_machine;
}

/* Further steps, with a clock reading around each call. */
static keel_status look_inside(process *p, keel_simulated *out)
{
    keel_program *g = p->trainer->train.program;
    const int n_worker = g->lanes->n_worker, n_node = g->graph->n_node;
    const int64_t quarter = out->measured_steps / 4 + 2;
    const int n = quarter < PROFILED_MOST ? (int)quarter : PROFILED_MOST;
    KEEL_TRY(keel_timing_create(&p->timing, n_worker, n_node, 0));
    g->timing = p->timing;
    for (int i = 0; i < n; i++) KEEL_TRY(step(p));
    g->timing = NULL;
    const double each = 1e-9 / n / n_worker;
    for (int w = 0; w < n_worker; w++) {
        const keel_timing_workspace *s = &p->timing->workspace[w];
        for (int i = 0; i < n_node; i++) {
            const int64_t *ns = s->call_ns + (int64_t)i * KEEL_PASS_COUNT;
            out->forward_seconds += each * (double)(ns[KEEL_FORWARD] + ns[KEEL_PARTIAL]);
            out->backward_seconds +=
                each * (double)(ns[KEEL_BACKWARD] + ns[KEEL_WEIGHTS] + ns[KEEL_PARTIAL_BACKWARD]);
        }
        out->update_seconds +=
            each * (double)(s->phase_ns[KEEL_PHASE_MERGE] + s->phase_ns[KEEL_PHASE_REDUCE] +
                            s->phase_ns[KEEL_PHASE_UPDATE]);
    }
    return KEEL_OK;
}

static keel_status measure(process *p, keel_simulated *out)
{
    const keel_measuring *x = p->hall->x;
    KEEL_TRY(begin(p));
    int64_t first, end;
    keel_lanes_rows(&p->strategy->lanes, x->batch_size, 0, &first, &end);
    out->rows = end - first;
    for (int i = 0; i < WARM; i++) KEEL_TRY(step(p));
    while (atomic_load(&p->hall->ready) < x->at_once - 1) KEEL_TRY(step(p)); /* and keeps warm */
    KEEL_TRY(time_steps(p, out));
    count_messages(p, out);
    return look_inside(p, out);
}

keel_status keel_measure_steps(const keel_measuring *x, keel_simulated *out)
{
    hall h = { .x = x };
    keel_simulated found = *out;
    int started = 1;
    process *p = keel_calloc((size_t)x->at_once, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    pthread_mutex_init(&h.making, NULL);
    keel_status s = KEEL_OK;
    for (int i = 0; i < x->at_once; i++) p[i] = (process){ .hall = &h, .rank = i };
    for (; started < x->at_once && s >= 0; started += s >= 0)
        if (pthread_create(&p[started].thread, NULL, accompany, &p[started]) != 0)
            s = keel_fail(KEEL_EDEVICE, "a thread cannot be started");
    if (s >= 0) s = measure(&p[0], &found);
    keel_failure own = { 0 };
    if (s < 0) keel_failure_take(&own, s);
    atomic_store(&h.stop, true);
    end(&p[0]);
    for (int i = 1; i < started; i++) pthread_join(p[i].thread, NULL);
    for (int i = 1; i < started && s >= 0; i++)
        if (p[i].failure.status < 0) s = keel_failure_raise(&p[i].failure);
    if (own.status < 0) s = keel_failure_raise(&own);
    pthread_mutex_destroy(&h.making);
    keel_free(p);
    if (s >= 0) *out = found;
    return s;
}
