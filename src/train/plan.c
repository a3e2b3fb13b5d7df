/* See keel_plan_make in keel/train.h. The split is computed by the feed's own plan. The memory is
 * that of a program compiled for the largest step, whose kernels are prepared but not run. */
#include "base/memory.h"
#include "graph/device_memory.h"
#include "train/profile.h"
#include "train/sharded.h"
#include "train/together.h"
#include "train/trainer.h"
#include <string.h>

static keel_status allocate(keel_plan *p, int devices, int workers)
{
    int64_t **const by_device[] = { &p->full, &p->last, &p->worker_of };
    int64_t **const by_worker[] = { &p->activation_bytes, &p->gradient_bytes, &p->scratch_bytes };
    p->process_full = keel_calloc((size_t)p->processes, sizeof *p->process_full);
    p->process_last = keel_calloc((size_t)p->processes, sizeof *p->process_last);
    if (!p->process_full || !p->process_last) return KEEL_ENOMEM;
    p->devices = devices;
    p->workers = workers;
    for (size_t i = 0; i < 3; i++) {
        if (!(*by_device[i] = keel_calloc((size_t)devices, sizeof(int64_t)))) return KEEL_ENOMEM;
        if (!(*by_worker[i] = keel_calloc((size_t)workers, sizeof(int64_t)))) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

void keel_plan_free(keel_plan *p)
{
    if (!p) return;
    keel_free(p->full);
    keel_free(p->last);
    keel_free(p->worker_of);
    keel_free(p->activation_bytes);
    keel_free(p->gradient_bytes);
    keel_free(p->scratch_bytes);
    keel_free(p->kernel);
    keel_free(p->process_full);
    keel_free(p->process_last);
    keel_free(p->device_bytes);
    keel_free(p->device_memory);
    keel_free(p->part);
    keel_free(p->staged);
    *p = (keel_plan){ 0 };
}

static keel_status cut_epoch(keel_plan *p, keel_end_of_data end)
{
    const int64_t tail = p->rows % p->batch_size;
    p->steps = p->rows / p->batch_size;
    if (tail == 0) return KEEL_OK;
    switch (end) {
    case KEEL_KEEP:
        p->steps++;
        p->last_rows = tail;
        return KEEL_OK;
    case KEEL_WRAP:
        p->steps++;
        return KEEL_OK;
    case KEEL_DROP:
    case KEEL_CARRY:
        p->unused_rows = tail;
        return KEEL_OK;
    default:
        return keel_fail(
            KEEL_EDATA,
            "%lld rows leave a last step of %lld, which --end error refuses; choose keep, "
            "drop, carry or wrap",
            (long long)p->rows, (long long)tail);
    }
}

static keel_status list_kernels(keel_plan *p, const keel_program *program)
{
    const int n = program->graph->n_node;
    if (!(p->kernel = keel_calloc((size_t)n, sizeof *p->kernel))) return KEEL_ENOMEM;
    for (int i = 0; i < n; i++) /* losses and metrics are no layers */
        if (!program->graph->node[i].node.sums)
            keel_kernel_row_fill(&p->kernel[p->n_kernel++], program, i);
    return KEEL_OK;
}

static keel_status measure_exchanges(keel_plan *p, const keel_trainer *trainer, int64_t rows)
{
    keel_traffic t;
    KEEL_TRY(keel_across_traffic(trainer->train.program, rows, &t));
    p->sent_gradients = t.gradients;
    p->sent_statistics = t.statistics;
    p->sent_others = t.others + keel_sharded_vote_bytes(trainer);
    p->exchanges = t.exchanges + (keel_sharded_vote_bytes(trainer) > 0);
    p->exchange_bytes = keel_across_bytes(trainer->train.program);
    p->total_bytes += p->exchange_bytes;
    return KEEL_OK;
}

static keel_status list_parts(keel_plan *p, const keel_program *program, int worker)
{
    keel_device_part part[KEEL_DEVICE_PARTS];
    const int n = keel_device_parts(program, worker, part);
    const size_t all = (size_t)(p->n_part + n);
    void *larger = keel_grow(p->part, all, sizeof *p->part);
    if (!larger) return KEEL_ENOMEM;
    p->part = larger;
    for (int i = 0; i < n; i++)
        p->part[p->n_part++] = (keel_memory_part){ worker, part[i].what, part[i].bytes };
    return KEEL_OK;
}

/* What the plan has of devices with memory of their own; *host is added to. */
static keel_status measure_devices(keel_plan *p, const keel_program *program, int64_t *host)
{
    keel_text staged = { 0 };
    if (!keel_lanes_device(program->lanes)) return KEEL_OK;
    p->device_bytes = keel_calloc((size_t)p->workers, sizeof *p->device_bytes);
    p->device_memory = keel_calloc((size_t)p->workers, sizeof *p->device_memory);
    if (!p->device_bytes || !p->device_memory) return KEEL_ENOMEM;
    for (int w = 0; w < p->workers; w++) {
        keel_device *d = program->lanes->device[w];
        if (!d) continue;
        if (d->type->look) d->type->look(d); /* kernels have been prepared */
        KEEL_TRY(list_parts(p, program, w));
        p->device_bytes[w] = keel_device_bytes(program, w);
        p->device_memory[w] = d->memory;
        *host += keel_device_host_bytes(program, w);
    }
    keel_program_staged(program, &staged);
    p->staged = staged.data;
    return staged.failed ? KEEL_ENOMEM : KEEL_OK;
}

static keel_status measure(keel_plan *p, keel_model *m, keel_strategy *s, const keel_shape *inputs)
{
    keel_pairing pairing;
    keel_trainer *t = NULL;
    const keel_trainer_options options = { .dry = true };
    const int64_t most = p->steps > p->last_rows / p->batch_size && p->rows >= p->batch_size
                             ? p->batch_size
                             : p->last_rows;
    KEEL_TRY(keel_pairing_guess(&pairing, m, inputs));
    const keel_trainer_work train = { &pairing, most }, none = { 0 };
    KEEL_TRY(keel_trainer_create(&t, m, s, &train, &none, &options));
    const keel_program *program = t->train.program;
    const int64_t element = (int64_t)keel_dtype_size(m->dtype);
    keel_status status = keel_program_measure(t->train.program, most);
    if (status >= 0) status = list_kernels(p, program);
    p->weight_bytes = t->store->n_master * element;
    p->moment_bytes = keel_trainer_moment_bytes(t);
    p->packed_bytes = keel_store_bytes(t->store) - p->weight_bytes;
    p->model_bytes = p->weight_bytes + keel_trainer_state_bytes(t);
    p->activation_bound = program->values_bound;
    int64_t steps = p->moment_bytes;
    for (int w = 0; w < p->workers; w++) {
        p->activation_bytes[w] = program->rows_bytes + program->shard_bytes;
        p->gradient_bytes[w] = program->gradient_elements * element + program->fold_bytes;
        p->scratch_bytes[w] = program->scratch_bytes + program->tile_bytes;
        if (program->lanes->device[w]) continue;
        steps += p->activation_bytes[w] + p->gradient_bytes[w] + p->scratch_bytes[w];
    }
    /* the model gives back its own copies before the first step (train/live.h) */
    p->total_bytes = keel_store_bytes(t->store) + (steps > p->model_bytes ? steps : p->model_bytes);
    if (status >= 0) status = measure_devices(p, program, &p->total_bytes);
    if (status >= 0) status = measure_exchanges(p, t, most);
    keel_trainer_destroy(t);
    return status;
}

static keel_status plan(keel_plan *p, keel_model *m, keel_strategy *s, keel_end_of_data end,
                        const keel_shape *inputs)
{
    keel_piece piece[KEEL_LANES_MAX];
    const keel_lanes *l = &s->lanes;
    KEEL_TRY(allocate(p, l->n_lane, l->n_worker));
    KEEL_TRY(cut_epoch(p, end));
    const int64_t full = p->rows >= p->batch_size || end == KEEL_WRAP ? p->batch_size : 0;
    for (int k = 0; k < 2; k++) {
        keel_cut(l, k ? p->last_rows : full, piece);
        for (int i = 0; i < l->n_part; i++) (k ? p->last : p->full)[piece[i].lane] += piece[i].rows;
    }
    for (int q = 0; q < l->n_process; q++)
        for (int k = 0; k < 2; k++) {
            int64_t first, next;
            keel_lanes_rows(l, k ? p->last_rows : full, q, &first, &next);
            (k ? p->process_last : p->process_full)[q] = next - first;
        }
    for (int i = 0; i < l->n_lane; i++) p->worker_of[i] = l->part[l->lane[i].first_part].worker;
    return measure(p, m, s, inputs);
}

/* Processes with the same devices; *before is allocated. */
static keel_status join(keel_lanes *l, int processes, int **before)
{
    if (processes < 1 || processes > KEEL_PROCESSES_MAX)
        return keel_fail(KEEL_EARG, "%d processes; 1 to %d are possible", processes,
                         KEEL_PROCESSES_MAX);
    if (processes == 1) return KEEL_OK;
    if (l->shards && processes * l->n_lane > l->shards)
        return keel_fail(KEEL_EARG,
                         "%d processes with %d devices each are more than the %d shards of a "
                         "reproducible step; give as many shards as devices at least",
                         processes, l->n_lane, l->shards);
    const int units = keel_lanes_units_before(l, l->n_lane);
    *before = keel_calloc((size_t)processes + 1, sizeof **before);
    if (!*before) return KEEL_ENOMEM;
    for (int q = 0; q <= processes; q++) (*before)[q] = q * units;
    keel_lanes_join(l, 0, processes, *before, processes * l->n_worker);
    l->all_lanes = processes * l->n_lane;
    return keel_strategy_check_shares(l, l->shards);
}

keel_status keel_plan_make(keel_plan *out, const keel_model *m, const keel_strategy *s,
                           int64_t rows, int64_t batch_size, keel_end_of_data end,
                           const keel_shape *inputs)
{
    return keel_plan_processes(out, m, s, 1, rows, batch_size, end, inputs);
}

keel_status keel_plan_processes(keel_plan *out, const keel_model *m, const keel_strategy *s,
                                int processes, int64_t rows, int64_t batch_size,
                                keel_end_of_data end, const keel_shape *inputs)
{
    keel_plan p = { .rows = rows, .batch_size = batch_size, .processes = processes };
    int *before = NULL;
    if (rows < 1 || batch_size < 1 || rows > INT64_MAX / 2 || batch_size > INT32_MAX)
        return keel_fail(KEEL_EARG, "plan needs at least one row and a batch size from 1 to %d",
                         INT32_MAX);
    /* lanes without a team, since nothing runs */
    keel_strategy *own = keel_calloc(1, sizeof *own);
    if (!own) return KEEL_ENOMEM;
    keel_status status = KEEL_OK;
    if (s) {
        own->lanes = s->lanes;
        own->compress = s->compress;
        own->shard_optimizer = s->shard_optimizer;
        own->recompute = s->recompute;
        own->micro_batch = s->micro_batch;
    } else
        status = keel_lanes_parse(&own->lanes, NULL);
    if (status >= 0) status = join(&own->lanes, processes, &before);
    if (status >= 0) own->one_kind = keel_strategy_one_kind(own);
    if (status >= 0) status = keel_strategy_check_compress(own, m->dtype);
    if (status >= 0 && own->shard_optimizer) status = keel_strategy_check_shards(own, m);
    /* planning reads the weights and changes nothing in the model */
    if (status >= 0) status = plan(&p, (keel_model *)m, own, end, inputs);
    keel_free(own);
    keel_free(before);
    if (status < 0)
        keel_plan_free(&p);
    else
        *out = p;
    return status;
}
