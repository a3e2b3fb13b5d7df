/* See absent.h. */
#include "simulate/absent.h"
#include "base/ascending.h"
#include "base/clock.h"
#include "comm/comm.h"
#include <string.h>

/* ---- the group ------------------------------------------------------------------------------- */

static const char *host(void *context, int rank)
{
    (void)context, (void)rank;
    return "simulated";
}

/* The processes of an exchange, besides which no other has bytes. */
static int others(const keel_absent *a, const keel_exchange *e)
{
    return e->with ? e->n_with : a->count;
}

static int other(const keel_exchange *e, int i)
{
    return e->with ? e->with[i] : i;
}

/* What process q would send is what it is sent, again and again up to the length. In an exchange
 * with some processes all get the same (graph/rounds.h), so it may be what another is sent. */
static void answer(const keel_exchange *e, int q)
{
    char *to = e->receive[q];
    const size_t want = e->receive_bytes[q];
    int like = q;
    for (int i = 0; e->with && i < e->n_with && e->send_bytes[like] == 0; i++) like = e->with[i];
    const size_t n = e->send_bytes[like];
    if (n == 0) {
        memset(to, 0, want);
        return;
    }
    for (size_t at = 0; at < want; at += n)
        memmove(to + at, e->send[like], want - at < n ? want - at : n);
}

static keel_load load_of(keel_absent *a, const keel_exchange *e)
{
    const int machine = a->rank / a->per_machine;
    keel_load x = { 0 };
    for (int i = 0; i < others(a, e); i++) {
        const int q = other(e, i);
        if (q == a->rank) continue;
        const double out = (double)e->send_bytes[q], in = (double)e->receive_bytes[q];
        const bool near = q / a->per_machine == machine;
        a->sent_bytes += (int64_t)e->send_bytes[q];
        a->messages += out > 0;
        x.messages += (out > 0) + (in > 0);
        *(near ? &x.local_out : &x.out) += out;
        *(near ? &x.local_in : &x.in) += in;
        x.asks = x.asks || (!near && (out > a->eager || in > a->eager));
    }
    return x;
}

static double computed(const keel_absent *a, int64_t now)
{
    return 1e-9 * (double)(now - a->begin_ns - a->lost_ns);
}

static int start(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    keel_absent *a = context;
    const int64_t now = keel_clock_ns();
    const keel_load load = load_of(a, e);
    (void)error, (void)size;
    keel_timeline_start(&a->timeline, computed(a, now), number, &load);
    for (int i = 0; i < others(a, e); i++) {
        const int q = other(e, i);
        if (q != a->rank && e->receive_bytes[q]) answer(e, q);
    }
    a->exchanges++;
    a->link_bytes += load.out;
    a->events++;
    a->lost_ns += keel_clock_ns() - now;
    return 0;
}

/* Of the exchanges that are asked for while nothing else happens, the one that ends first. */
static int first_asked(const keel_absent *a, int number)
{
    for (int i = 0; i < KEEL_EXCHANGES_MAX; i++)
        if (a->asked[i] == a->events && a->timeline.end[i] < a->timeline.end[number]) number = i;
    return number;
}

/* Who asks twice while nothing else happens waits, for the first of all that are asked for. */
static int test(void *context, int number, char *error, size_t size)
{
    keel_absent *a = context;
    const double at = computed(a, keel_clock_ns());
    (void)error, (void)size;
    bool complete = keel_timeline_look(&a->timeline, at, number);
    if (!complete && !(a->passing && *a->passing)) {
        if (a->asked[number] == a->events) {
            const int first = first_asked(a, number);
            keel_timeline_wait(&a->timeline, at, first);
            complete = first == number;
        }
        a->asked[number] = a->events;
    }
    a->events += complete;
    return complete;
}

static int awaited(void *context, int number)
{
    (void)context, (void)number;
    return -1;
}

static void close_group(void *context, bool failed)
{
    (void)context, (void)failed;
}

keel_process_group keel_absent_group(keel_absent *a)
{
    return (keel_process_group){ KEEL_PROCESS_GROUP, .rank = a->rank,    .count = a->count,
                                 .context = a,       .host = host,       .start = start,
                                 .test = test,       .awaited = awaited, .close = close_group };
}

void keel_absent_begin(keel_absent *a)
{
    keel_timeline_begin(&a->timeline);
    a->lost_ns = a->sent_bytes = a->messages = a->exchanges = 0;
    a->link_bytes = 0;
    a->events++;
    a->begin_ns = keel_clock_ns();
}

void keel_absent_end(keel_absent *a)
{
    keel_timeline_end(&a->timeline, computed(a, keel_clock_ns()));
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* A group whose exchanges take a given time. */
typedef struct late {
    int64_t takes_ns, begin_ns;
} late;

static int start_late(void *context, int number, const keel_exchange *e, char *error, size_t size)
{
    late *x = context;
    (void)number, (void)e, (void)error, (void)size;
    x->begin_ns = keel_clock_ns();
    return 0;
}

static int test_late(void *context, int number, char *error, size_t size)
{
    const late *x = context;
    (void)number, (void)error, (void)size;
    return keel_clock_ns() - x->begin_ns >= x->takes_ns;
}

/* The times in between are what matters: where the wait ends between two polls, the delay is
 * anything up to the pause, so each point is a mean over times around it. */
keel_status keel_absent_notice(keel_noticed *out)
{
    enum { POINTS = 7, EACH = 9 };
    late x = { 0 };
    keel_noticed seen = { .n = POINTS };
    keel_comm *c = NULL;
    const keel_process_group g = { KEEL_PROCESS_GROUP, .count = 2,          .context = &x,
                                   .host = host,       .start = start_late, .test = test_late,
                                   .awaited = awaited, .close = close_group };
    const size_t none[2] = { 0 };
    const void *const from[2] = { 0 };
    void *const to[2] = { 0 };
    KEEL_TRY(keel_comm_create(&c, &g));
    keel_status s = KEEL_OK;
    for (int i = 0; i < POINTS && s >= 0; i++) {
        const double at = 20e-6 * (1 << i); /* 20 us to 1.3 ms: beyond, pauses are equally long */
        double took[EACH];
        for (int k = 0; k < EACH && s >= 0; k++) {
            const double around = at * (1 + 0.4 * (k - EACH / 2) / EACH);
            x.takes_ns = (int64_t)(1e9 * around);
            s = keel_comm_exchange(c, &(keel_exchange){ from, none, to, none });
            took[k] = 1e-9 * (double)(keel_clock_ns() - x.begin_ns) - around;
        }
        keel_sort_ascending(took, EACH);
        seen.after[i] = at;
        seen.seen[i] = at + (took[EACH / 2] > 0 ? took[EACH / 2] : 0);
        if (i && seen.seen[i] < seen.seen[i - 1]) seen.seen[i] = seen.seen[i - 1];
    }
    keel_comm_destroy(c);
    if (s >= 0) *out = seen;
    return s;
}
