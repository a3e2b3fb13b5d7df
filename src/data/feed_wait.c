/* A step waits for its rows. Whoever waits has nothing else to do, so it looks now and then at what
 * the threads are doing, and charges the time until the next look to the stage where the row is
 * that the step needs first: that of the earliest row, or what the thread waits for that makes a
 * stream.
 */
#include "data/feed_impl.h"
#include "data/flow.h"
#include "data/iter.h"
#include <time.h>

static const int64_t FIRST_NS = 50000, MOST_NS = 2000000; /* from one look to the next */

/* The thread to look at; NULL: the one that reads the earliest row. */
static const keel_probe *first_to_ask(const keel_feed *f)
{
    const keel_probe *own = f->probe;
    if (!f->source->next) return NULL;
    if (own && atomic_load_explicit(&own->now, memory_order_relaxed)) return own;
    return f->flow ? keel_flow_run(f->flow)->probe : own;
}

static void sleep_for(keel_feed *f, int64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&f->ready, &f->lock, &until);
}

void keel_feed_wait(keel_feed *f, const keel_slot *s)
{
    if (s->state == KEEL_SLOT_READY) return;
    const int64_t begin = keel_clock_ns();
    int64_t last = begin, pause = FIRST_NS;
    while (s->state != KEEL_SLOT_READY && !keel_watchdog_is_over(f->watchdog) &&
           (!f->wait_until || last < f->wait_until)) {
        const keel_probe *first = first_to_ask(f);
        const keel_work_place at = keel_work_look(f->work, first);
        /* not the same pause each time, since work that comes at a fixed one would then be looked
         * at in the same place always */
        sleep_for(f, pause + (int64_t)((uint64_t)last % (uint64_t)pause) / 2);
        const int64_t now = keel_clock_ns();
        keel_work_blame(f->work, at, now - last);
        last = now;
        if (pause < MOST_NS) pause *= 2;
    }
    f->waited += 1e-9 * (double)(last - begin);
}
