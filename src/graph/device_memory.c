/* See device_memory.h. Sizes were checked for overflow when the program was planned; here they are
 * only added, up to INT64_MAX. */
#include "graph/device_memory.h"
#include "graph/on_device.h"
#include <stdio.h>

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t bytes_of(const keel_program *p, int worker, keel_arena_kind kind)
{
    const keel_on_device *x = p->workspace[worker].on_device;
    const int64_t element = (int64_t)keel_dtype_size(p->options.real), real = sizeof(double);
    const bool trains = p->graph->backward;
    switch (kind) {
    case KEEL_ARENA_ROWS:
        return p->rows_bytes;
    case KEEL_ARENA_SHARD:
        return p->shard_bytes;
    case KEEL_ARENA_SCRATCH:
        return p->scratch_bytes;
    case KEEL_ARENA_GRAD:
    case KEEL_ARENA_HOST_GRAD:
        return trains ? times(p->gradient_elements, element) : 0;
    case KEEL_ARENA_FOLD:
        return trains ? p->fold_bytes : 0;
    case KEEL_ARENA_MERGED:
    case KEEL_ARENA_HOST_MERGED:
        return times(p->merged_doubles, real);
    case KEEL_ARENA_ROW_RECORDS:
    case KEEL_ARENA_HOST_ROW_RECORDS:
        return times(p->row_doubles, real);
    case KEEL_ARENA_INPUTS:
        return times(x->inputs_bytes, KEEL_ROW_SLOTS);
    case KEEL_ARENA_WEIGHTS:
        return times(p->store->n_master, (int64_t)keel_dtype_size(p->store->real));
    case KEEL_ARENA_FACTS:
    case KEEL_ARENA_HOST_FACTS:
        return KEEL_FACTS_BYTES;
    case KEEL_ARENA_SLOTS:
        return p->slot_bytes;
    case KEEL_ARENA_HOST_REPORT:
        return p->report_bytes;
    case KEEL_ARENA_HOST_KEPT:
        return worker == 0 ? p->kept_bytes : 0;
    case KEEL_ARENA_DEVICE_RECORD:
    case KEEL_ARENA_DEVICE_RECORD_LAST:
        return x->device->type->fold ? times(p->record_doubles, real) : 0;
    case KEEL_ARENA_HOST_ROW_SUMS:
        return times(x->sums_doubles, real);
    case KEEL_ARENA_HOST_SCRATCH:
        return plus(p->host_scratch_bytes, p->merge_bytes);
    case KEEL_ARENA_HOST_OUTPUTS:
        return x->outputs_bytes;
    default:
        return 0;
    }
}

/* Arenas that are larger for another program stay so. */
static int64_t held(const keel_program *p, int worker, keel_arena_kind kind)
{
    const int64_t now = p->arenas->buffer[worker * KEEL_ARENA_KINDS + (int)kind].bytes;
    const int64_t own = bytes_of(p, worker, kind);
    return own > now ? own : now;
}

int64_t keel_device_bytes(const keel_program *p, int worker)
{
    int64_t sum = 0;
    if (!p->workspace[worker].on_device) return 0;
    for (int k = 0; k < KEEL_ARENA_HOST; k++)
        sum = plus(sum, bytes_of(p, worker, (keel_arena_kind)k));
    return plus(sum, keel_device_own_bytes(p->lanes->device[worker]));
}

int keel_device_parts(const keel_program *p, int worker, keel_device_part *out)
{
    const keel_device *d = p->lanes->device[worker];
    int n = 0;
    if (!p->workspace[worker].on_device) return 0;
    for (int k = 0; k < KEEL_ARENA_HOST; k++) {
        const keel_arena_kind kind = (keel_arena_kind)k;
        out[n] = (keel_device_part){ keel_arena_name(kind), bytes_of(p, worker, kind) };
        n += out[n].bytes > 0;
    }
    for (int k = 0; k < KEEL_OWN_KINDS; k++) {
        out[n] = (keel_device_part){ keel_device_own_name((keel_device_own)k), d->own[k] };
        n += out[n].bytes > 0;
    }
    return n;
}

int64_t keel_device_host_bytes(const keel_program *p, int worker)
{
    int64_t sum = 0;
    if (!p->workspace[worker].on_device) return 0;
    for (int k = KEEL_ARENA_HOST_SCRATCH; k < KEEL_ARENA_KINDS; k++)
        sum = plus(sum, bytes_of(p, worker, (keel_arena_kind)k));
    return sum;
}

static keel_status refuse(const keel_program *p, int worker, int64_t all)
{
    const keel_device *d = p->lanes->device[worker];
    char parts[640] = "";
    size_t n = 0;
    for (int k = 0; k < KEEL_ARENA_HOST + KEEL_OWN_BEFORE; k++) {
        const int own = k - KEEL_ARENA_HOST;
        const int64_t bytes = own < 0 ? held(p, worker, (keel_arena_kind)k) : d->own[own];
        if (bytes == 0 || n >= sizeof parts) continue;
        n += (size_t)snprintf(parts + n, sizeof parts - n, "%s%lld for %s", n ? ", " : "",
                              (long long)bytes,
                              own < 0 ? keel_arena_name((keel_arena_kind)k)
                                      : keel_device_own_name((keel_device_own)own));
    }
    return keel_fail(KEEL_ENOMEM,
                     "%s has %lld bytes for this process, and steps of %lld rows need %lld of it: "
                     "%s; use %ssmaller batches or more devices",
                     d->name, (long long)d->memory, (long long)p->options.max_rows, (long long)all,
                     parts, p->graph->backward && !p->options.recompute ? "--recompute, " : "");
}

keel_status keel_device_memory_check(const keel_program *p)
{
    for (int w = 0; w < p->lanes->n_worker; w++) {
        keel_device *d = p->lanes->device[w];
        int64_t all = 0;
        if (!d) continue;
        if (d->type->look) d->type->look(d);
        for (int k = 0; k < KEEL_ARENA_HOST; k++) all = plus(all, held(p, w, (keel_arena_kind)k));
        all = plus(all, keel_device_own_bytes(d));
        if (all > d->memory) return refuse(p, w, all);
    }
    return KEEL_OK;
}
