/* Gradients go out in buckets while backward computes those of the layers before: see on_device.h.
 * A bucket has the gradients that are complete after the same segments, so it can be copied as soon
 * as the last of these has been enqueued. */
#include "base/memory.h"
#include "graph/buckets.h"
#include "graph/on_device.h"

static int64_t element_of(const keel_program *p)
{
    return (int64_t)keel_dtype_size(p->options.real);
}

static int64_t add_range(keel_on_device *x, int64_t at, int64_t bytes, bool merged)
{
    if (bytes > 0) x->range[x->n_range++] = (keel_out_range){ at, bytes, merged };
    return bytes;
}

/* The gradients of a weight that a worker makes: the first, and those of other shards. Returns
 * their bytes. */
static int64_t add_weight(const keel_program *p, keel_on_device *x, keel_variable v)
{
    const keel_gradient *g = &p->gradient[v];
    const int64_t behind =
        v + 1 < p->store->n_weight ? p->gradient[v + 1].others : p->gradient_elements;
    const bool merged = g->kind == KEEL_GRADIENT_MERGED;
    return add_range(x, g->first * element_of(p), g->count * element_of(p), merged) +
           add_range(x, g->others * element_of(p), (behind - g->others) * element_of(p), merged);
}

static int64_t add_segment(const keel_program *p, keel_on_device *x, const int *last, int segment)
{
    int64_t bytes = 0;
    for (int v = 0; v < p->store->n_weight; v++)
        if (last[v] == segment && p->gradient[v].kind != KEEL_GRADIENT_NONE)
            bytes += add_weight(p, x, v);
    return bytes;
}

keel_status keel_on_device_divide(const keel_program *p, keel_on_device *x)
{
    const size_t n = (size_t)p->store->n_weight;
    const int64_t share = p->gradient_elements * element_of(p) / KEEL_OUT_BUCKETS + 1;
    const int64_t least = x->device->bucket_bytes > share ? x->device->bucket_bytes : share;
    int64_t held = least; /* of the last bucket: a new one begins */
    int *last = keel_calloc(n, sizeof *last);
    x->range = keel_calloc(2 * n, sizeof *x->range);
    if (!last || !x->range) {
        keel_free(last);
        return KEEL_ENOMEM;
    }
    keel_gradients_segments(p, last);
    for (int g = 0; g < p->schedule.n_segment; g++) {
        const int first = x->n_range;
        const int64_t bytes = add_segment(p, x, last, g);
        if (x->n_range == first) continue;
        if (held >= least) {
            x->bucket[x->n_bucket++].first = first;
            held = 0;
        }
        keel_out_bucket *k = &x->bucket[x->n_bucket - 1];
        held += bytes;
        k->segment = g;
        k->n = x->n_range - k->first;
    }
    keel_free(last);
    return KEEL_OK;
}

static bool is_made(const keel_out_range *r, bool has_first_row)
{
    return !r->merged || has_first_row;
}

/* The worker reads it when the run has ended. */
void keel_on_device_read_gradients(const keel_workspace *s, bool has_first_row)
{
    const keel_on_device *x = s->on_device;
    for (int i = 0; i < x->n_range; i++)
        if (is_made(&x->range[i], has_first_row))
            keel_device_touches(x->device, s->host.grad + x->range[i].at, x->range[i].bytes, false);
}

bool keel_on_device_send(keel_workspace *s, int segment, bool has_first_row)
{
    keel_on_device *x = s->on_device;
    keel_device *d = x->device;
    bool sends = false;
    for (int k = 0; k < x->n_bucket; k++) {
        const keel_out_bucket *b = &x->bucket[k];
        if (b->segment != segment) continue; /* at most one has it */
        for (int i = b->first; i < b->first + b->n; i++) {
            const keel_out_range *r = &x->range[i];
            if (!is_made(r, has_first_row)) continue;
            if (!sends) keel_on_device_follow(d, KEEL_EVENT_BUCKET + k);
            sends = true;
            d->type->copy_out(d, KEEL_COPY_OUT_STREAM, s->host.grad + r->at, s->grad + r->at,
                              r->bytes);
        }
    }
    if (sends) x->sent = segment;
    return sends;
}
