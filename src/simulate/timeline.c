/* See timeline.h. */
#include "simulate/timeline.h"
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

void keel_timeline_begin(keel_timeline *t)
{
    *t = (keel_timeline){ .network = t->network, .noticed = t->noticed, .together = t->together };
}

static void compute(keel_timeline *t, double computed)
{
    t->now += computed - t->computed;
    t->computed = computed;
}

/* When so many bytes have passed that are ready from a time on, and follow others. */
static double pass(const keel_timeline *t, double *until, double ready, double bytes)
{
    if (bytes <= 0) return ready;
    return *until = larger(*until, ready) + bytes * t->together / t->network->bytes_per_second;
}

static double own_seconds(const keel_network *n, double bytes)
{
    return n->own_bytes_per_second > 0 ? bytes / n->own_bytes_per_second : 0;
}

/* The link of a machine carries bytes both ways at once. What is started while other bytes are on
 * their way asks meanwhile, and follows them. */
void keel_timeline_start(keel_timeline *t, double computed, int number, const keel_load *load)
{
    compute(t, computed);
    t->now += load->messages * t->network->message;
    const double ready = t->now + latency_of(t->network, load);
    if (ready > larger(t->out, t->in)) t->moves = ready;
    t->end[number] = larger(pass(t, &t->out, ready, load->out), pass(t, &t->in, ready, load->in));
    t->first[number] = load->out + load->in > 0 ? t->moves : ready; /* else the link carries none */
    t->now += own_seconds(t->network, load->out);
    t->own[number] = own_seconds(t->network, load->in);
    t->copies[number] = keel_load_copies(t->network, load);
}

/* The process copies what has come from others of its machine, and takes what has come from other
 * machines, once. */
static void take(keel_timeline *t, int number)
{
    t->now += t->copies[number] + t->own[number];
    t->copies[number] = t->own[number] = 0;
}

/* Who waited for so long has taken meanwhile what came from other machines, of any exchange. */
static void take_while_waiting(keel_timeline *t, double waited)
{
    for (int i = 0; i < KEEL_EXCHANGES_MAX && waited > 0; i++) {
        if (t->end[i] > t->now) continue;
        const double taken = t->own[i] < waited ? t->own[i] : waited;
        t->own[i] -= taken;
        waited -= taken;
    }
}

bool keel_timeline_look(keel_timeline *t, double computed, int number)
{
    compute(t, computed);
    if (t->end[number] > t->now) return false;
    take(t, number);
    return true;
}

void keel_timeline_wait(keel_timeline *t, double computed, int number)
{
    compute(t, computed);
    const double begin = t->now,
                 seen = t->now + keel_noticed_after(t->noticed, t->first[number] - t->now);
    t->now = larger(seen, t->end[number]);
    take_while_waiting(t, t->now - begin);
    take(t, number);
}

double keel_timeline_end(keel_timeline *t, double computed)
{
    compute(t, computed);
    return t->now;
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
        { "own_bytes_per_second", n->own_bytes_per_second ? n->own_bytes_per_second : 1, 1, 1e15 },
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
