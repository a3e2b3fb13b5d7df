/* Gradients go out in buckets while backward computes those of the layers before: see on_device.h.
 * A bucket has the gradients that are complete after the same segments, so it can be copied as soon
 * as the last of these has been enqueued.
 *
 * Devices that are a group add up their gradients themselves, in the same buckets and behind the
 * same events, on the stream that copies out; the first worker's device copies the sums, if the
 * host moves the weights. That is so where bits may depend on the order of the sum, which is the
 * group's own, and in steps in which each worker has rows, and one gradient of each weight. Of
 * several processes each sums its own, and their hosts exchange the sums: buckets.h. */
#include "base/clock.h"
#include "base/memory.h"
#include "base/relax.h"
#include "graph/across.h"
#include "graph/buckets.h"
#include "graph/on_device.h"
#include <time.h>

static int64_t element_of(const keel_program *p)
{
    return (int64_t)keel_dtype_size(p->options.real);
}

static int64_t add_range(keel_on_device *x, keel_out_range r)
{
    if (r.bytes > 0) x->range[x->n_range++] = r;
    return r.bytes;
}

/* The gradients of a weight that a worker makes: the first, and those of other shards. Returns
 * their bytes. */
static int64_t add_weight(const keel_program *p, keel_on_device *x, keel_variable v)
{
    const keel_gradient *g = &p->gradient[v];
    const int64_t behind =
        v + 1 < p->store->n_weight ? p->gradient[v + 1].others : p->gradient_elements;
    const bool merged = g->kind == KEEL_GRADIENT_MERGED;
    const int64_t e = element_of(p);
    return add_range(x, (keel_out_range){ g->first * e, g->count * e, merged, false }) +
           add_range(x, (keel_out_range){ g->others * e, (behind - g->others) * e, merged, true });
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
    x->summed = keel_calloc(2 * n, sizeof *x->summed);
    if (!last || !x->range || !x->summed) {
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

static bool has_row_0(const keel_bound *b, int worker)
{
    return b->n_busy > 0 && b->piece[0].row == 0 && b->piece[0].worker == worker;
}

/* Whether the host gets it from this worker. */
static bool goes_out(const keel_program *p, const keel_bound *b, const keel_out_range *r,
                     int worker)
{
    if (p->checks_there && p->lanes->n_worker == 1) return false;
    if (r->merged) return has_row_0(b, worker);
    if (!p->sums_there) return true;
    return !p->checks_there && worker == 0 && !r->further;
}

static void read_ranges(const keel_program *p, const keel_bound *b, int worker, int first, int n)
{
    const keel_workspace *s = &p->workspace[worker];
    const keel_on_device *x = s->on_device;
    for (int i = first; i < first + n; i++)
        if (goes_out(p, b, &x->range[i], worker))
            keel_device_touches(x->device, s->host.grad + x->range[i].at, x->range[i].bytes, false);
}

/* The worker reads it when the run has ended. */
void keel_on_device_read_gradients(const keel_program *p, const keel_bound *b, int worker)
{
    read_ranges(p, b, worker, 0, p->workspace[worker].on_device->n_range);
}

/* Adds up the bucket's gradients of all workers. False: it has none that all make. */
static bool sum_bucket(const keel_program *p, int worker, const keel_out_bucket *b, int event)
{
    const keel_workspace *s = &p->workspace[worker];
    keel_on_device *x = s->on_device;
    int n = 0;
    for (int i = b->first; i < b->first + b->n; i++)
        if (!x->range[i].merged && !x->range[i].further)
            x->summed[n++] =
                (keel_device_range){ s->grad + x->range[i].at, x->range[i].bytes / element_of(p) };
    if (n == 0) return false;
    keel_on_device_follow(x->device, event);
    x->device->type->sum(x->device, p->options.sums, worker, p->options.real, x->summed, n);
    return true;
}

static bool exchanges(const keel_program *p)
{
    return p->across && p->across->buckets;
}

bool keel_on_device_send(const keel_program *p, const keel_bound *b, int worker, int segment)
{
    const keel_workspace *s = &p->workspace[worker];
    keel_on_device *x = s->on_device;
    keel_device *d = x->device;
    bool sends = false;
    for (int k = 0; k < x->n_bucket; k++) {
        keel_out_bucket *o = &x->bucket[k];
        if (o->segment != segment) continue; /* at most one has it */
        if (p->sums_there) sends = sum_bucket(p, worker, o, KEEL_EVENT_BUCKET + k);
        for (int i = o->first; i < o->first + o->n; i++) {
            const keel_out_range *r = &x->range[i];
            if (!goes_out(p, b, r, worker)) continue;
            if (!sends) keel_on_device_follow(d, KEEL_EVENT_BUCKET + k);
            sends = true;
            d->type->copy_out(d, KEEL_COPY_OUT_STREAM, s->host.grad + r->at, s->grad + r->at,
                              r->bytes);
        }
        o->follows = sends;
        x->out = k + 1;
        if (sends && exchanges(p)) d->type->record(d, KEEL_COPY_OUT_STREAM, KEEL_EVENT_CAME + k);
    }
    if (sends) x->sent = segment;
    return sends;
}

/* ---- of several processes -------------------------------------------------------------------- */

/* Asks for the next bucket: 1: it has come; 0: not yet; -1: the device has failed. */
static int next_came(const keel_program *p, const keel_bound *b, int worker)
{
    keel_on_device *x = p->workspace[worker].on_device;
    const keel_out_bucket *k = &x->bucket[x->came];
    const int event = KEEL_EVENT_CAME + x->came;
    const int passed = k->follows ? x->device->type->passed(x->device, event) : 1;
    if (passed <= 0) return passed;
    if (k->follows) read_ranges(p, b, worker, k->first, k->n);
    x->came++;
    return 1;
}

int keel_on_device_came(const keel_program *p, const keel_bound *b, int worker)
{
    const keel_on_device *x = p->workspace[worker].on_device;
    while (x->came < x->out && next_came(p, b, worker) > 0) continue;
    return x->came > 0 ? x->bucket[x->came - 1].segment : -1;
}

/* Between two questions: others may need the core. */
static void nap(int64_t waited_ns)
{
    enum { AWAKE_NS = 200000, NAP_NS = 20000 };
    if (waited_ns < AWAKE_NS)
        keel_relax();
    else
        nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
}

void keel_on_device_pass(const keel_program *p, const keel_bound *b, int worker)
{
    const keel_on_device *x = p->workspace[worker].on_device;
    const double most = 1e9 * x->device->patience; /* then the host waits for it, and gives up */
    const int64_t begin = keel_clock_ns();
    int64_t now = begin;
    while (exchanges(p) && x->came < x->out && (double)(now - begin) < most) {
        const int came = next_came(p, b, worker);
        if (came < 0) return;
        if (came > 0) keel_buckets_arrive(p, worker, x->bucket[x->came - 1].segment);
        if (came > 0 || worker == 0) keel_buckets_pass(p, b, worker); /* it exchanges for all */
        if (came == 0) nap(now - begin);
        now = keel_clock_ns();
    }
}

void keel_on_device_choose_sums(keel_program *p, const keel_bound *b)
{
    p->sums_there = b->one_each && keel_device_group_works(p->options.sums);
}

void keel_on_device_give_up(const keel_program *p)
{
    if (p->sums_there) p->options.sums->type->give_up(p->options.sums);
}
