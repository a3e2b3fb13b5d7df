/* See timeline.h. */
#include "simulate/timeline.h"
#include "base/memory.h"
#include "keel/process_group.h"
#include <math.h>

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double keel_noticed_after(const keel_noticed *x, double seconds)
{
    int i = 0;
    if (x->n == 0 || seconds <= 0) return larger(seconds, 0);
    if (seconds >= x->after[x->n - 1]) return seconds + x->seen[x->n - 1] - x->after[x->n - 1];
    while (x->after[i] < seconds) i++;
    const double after = i ? x->after[i - 1] : 0, seen = i ? x->seen[i - 1] : 0;
    const double part = (seconds - after) / (x->after[i] - after);
    return larger(seconds, seen + part * (x->seen[i] - seen));
}

/* Messages of one exchange are under way together, so the latency counts once for all of them. */
static double latency_of(const keel_network *n, const keel_load *x)
{
    const double far = x->out + x->in > 0 ? (x->asks ? 3 : 1) * n->latency : 0;
    const double near = x->local_out + x->local_in > 0 ? n->local_latency : 0;
    return larger(far, near);
}

double keel_load_seconds(const keel_network *n, const keel_load *x, int together)
{
    return latency_of(n, x) + larger(x->out, x->in) * together / n->bytes_per_second;
}

double keel_load_copies(const keel_network *n, const keel_load *x)
{
    const double bytes = x->local_out + x->local_in;
    return bytes > 0 ? bytes / n->local_bytes_per_second : 0;
}

/* The link of a machine carries bytes both ways at once. What is started while other bytes are on
 * their way asks meanwhile, and follows them. */
typedef struct link {
    double moves;   /* since then it has carried bytes without a pause */
    double out, in; /* until then */
} link;

/* When so many seconds of bytes have passed that are ready from a time on. */
static double pass(double *until, double ready, double seconds)
{
    if (seconds <= 0) return ready;
    return *until = larger(*until, ready) + seconds;
}

static double carry(link *l, const keel_network *n, const keel_load *x, double ready, int together)
{
    const double each = together / n->bytes_per_second;
    if (ready > larger(l->out, l->in)) l->moves = ready;
    return larger(pass(&l->out, ready, x->out * each), pass(&l->in, ready, x->in * each));
}

keel_replayed keel_timeline_replay(const keel_timeline *t, const keel_network *n,
                                   const keel_noticed *noticed, int together)
{
    double now = 0, computed = 0, copies[KEEL_EXCHANGES_MAX] = { 0 };
    double first[KEEL_EXCHANGES_MAX] = { 0 }, end[KEEL_EXCHANGES_MAX] = { 0 };
    link l = { 0 };
    for (int i = 0; i < t->n; i++) {
        const keel_event_of_step *e = &t->event[i];
        now += e->at - computed;
        computed = e->at;
        if (e->starts) {
            now += e->load.messages * n->message;
            end[e->number] = carry(&l, n, &e->load, now + latency_of(n, &e->load), together);
            first[e->number] = l.moves;
            copies[e->number] = keel_load_copies(n, &e->load);
        } else {
            now = larger(now + keel_noticed_after(noticed, first[e->number] - now), end[e->number]);
            now += copies[e->number];
            copies[e->number] = 0;
        }
    }
    now += t->compute - computed;
    return (keel_replayed){ now, now - t->compute };
}

keel_status keel_timeline_add(keel_timeline *t, const keel_event_of_step *e)
{
    if (t->n == t->capacity) {
        const int capacity = t->capacity ? 2 * t->capacity : 64;
        void *grown = keel_grow(t->event, (size_t)capacity, sizeof *t->event);
        if (!grown) return KEEL_ENOMEM;
        t->event = grown;
        t->capacity = capacity;
    }
    t->event[t->n++] = *e;
    return KEEL_OK;
}

void keel_timeline_clear(keel_timeline *t)
{
    t->n = 0;
    t->compute = 0;
}

void keel_timeline_free(keel_timeline *t)
{
    keel_free(t->event);
    *t = (keel_timeline){ 0 };
}

keel_status keel_network_check(const keel_network *n)
{
    const struct {
        const char *what;
        double value, least, most;
    } range[] = {
        { "bytes_per_second, the rate of a link", n->bytes_per_second, 1, 1e15 },
        { "latency", n->latency, 0, 3600 },
        { "message, the time for one message", n->message, 0, 3600 },
        { "eager, the bytes that are sent without asking", n->eager, 0, 1e15 },
        { "local_bytes_per_second", n->local_bytes_per_second ? n->local_bytes_per_second : 1, 1,
          1e15 },
        { "local_latency", n->local_latency, 0, 3600 },
    };
    if (n->size != sizeof *n)
        return keel_fail(KEEL_EARG, "a network of another version of Keel; begin it with "
                                    "KEEL_NETWORK");
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (!(range[i].value >= range[i].least && range[i].value <= range[i].most))
            return keel_fail(KEEL_EARG, "network: %s is %g; it must be %g to %g", range[i].what,
                             range[i].value, range[i].least, range[i].most);
    return KEEL_OK;
}
