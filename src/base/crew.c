/* `next` is the running phase and its next turn in one word, so a turn can only be taken of the
 * phase that was read. Who ends the last turn of a phase moves all on to the next one. Threads that
 * wait for this sleep on `phase`, as those of base/meeting.c on their generation. */
#include "base/crew.h"
#include "base/memory.h"
#include "base/relax.h"
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CACHE_LINE = 64 };

struct keel_crew {
    int places, spins; /* constant */
    const int *turn;   /* [n] constant while they work */
    int n;
    _Alignas(CACHE_LINE) _Atomic uint64_t next;  /* phase << 32 | turn */
    _Alignas(CACHE_LINE) _Atomic uint32_t over;  /* turns of the phase */
    _Alignas(CACHE_LINE) _Atomic uint32_t phase; /* the futex word */
    _Alignas(CACHE_LINE) _Atomic uint32_t sleepers;
    _Alignas(CACHE_LINE) _Atomic uint32_t here; /* threads that have come */
};

keel_status keel_crew_create(keel_crew **out, int places, int spins)
{
    keel_crew *c = keel_aligned_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    c->places = places;
    c->spins = spins;
    *out = c;
    return KEEL_OK;
}

void keel_crew_destroy(keel_crew *c)
{
    keel_free(c);
}

static uint64_t word_of(uint32_t phase)
{
    return (uint64_t)phase << 32;
}

void keel_crew_begin(keel_crew *c, const int *turn, int n)
{
    c->turn = turn;
    c->n = n;
    atomic_store(&c->over, 0);
    atomic_store(&c->here, 0);
    atomic_store(&c->phase, 0);
    atomic_store(&c->next, word_of(0));
}

static void end_phase(keel_crew *c, uint32_t phase)
{
    atomic_store_explicit(&c->over, 0, memory_order_relaxed);
    atomic_store_explicit(&c->next, word_of(phase + 1), memory_order_release);
    atomic_store(&c->phase, phase + 1);
    if (atomic_load(&c->sleepers))
        syscall(SYS_futex, &c->phase, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void wait_for_next(keel_crew *c, uint32_t phase)
{
    for (int i = 0; i < c->spins; i++) {
        if (atomic_load_explicit(&c->phase, memory_order_acquire) > phase) return;
        keel_relax();
    }
    atomic_fetch_add(&c->sleepers, 1);
    for (uint32_t at; (at = atomic_load(&c->phase)) <= phase;)
        syscall(SYS_futex, &c->phase, FUTEX_WAIT_PRIVATE, at, NULL, NULL, 0);
    atomic_fetch_sub(&c->sleepers, 1);
}

void keel_crew_work(keel_crew *c, void (*run)(void *, int, int, int), void *context)
{
    int place = -1;
    for (;;) {
        uint64_t next = atomic_load_explicit(&c->next, memory_order_acquire);
        const uint32_t phase = (uint32_t)(next >> 32), turn = (uint32_t)next;
        if ((int)phase == c->n) return;
        if (place < 0) place = (int)atomic_fetch_add(&c->here, 1);
        if (place >= c->places || (int)turn >= c->turn[phase]) {
            wait_for_next(c, phase);
            continue;
        }
        if (!atomic_compare_exchange_weak(&c->next, &next, next + 1)) continue;
        run(context, (int)phase, (int)turn, place);
        if (atomic_fetch_add(&c->over, 1) + 1 == (uint32_t)c->turn[phase]) end_phase(c, phase);
    }
}
