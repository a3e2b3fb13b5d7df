/* A barrier by generations. Each participant reads the generation, then arrives; the last to arrive
 * advances the generation, which releases the others. A participant that has spun without success
 * adds itself to `sleepers` before it reads the generation a last time; the last to arrive advances
 * the generation before it reads `sleepers`. Both are sequentially consistent, so one of them sees
 * the other, and no wake-up is lost. */
#include "base/meeting.h"
#include "base/memory.h"
#include "base/relax.h"
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CACHE_LINE = 64 };

struct keel_meeting {
    int n, spins;                                     /* constant */
    _Alignas(CACHE_LINE) _Atomic uint32_t arrived;    /* written by all; the last resets it to 0 */
    _Alignas(CACHE_LINE) _Atomic uint32_t generation; /* written by the last; the futex word */
    _Alignas(CACHE_LINE) _Atomic uint32_t sleepers;   /* written by those that sleep */
};

keel_status keel_meeting_create(keel_meeting **out, int n, int spins)
{
    if (n < 1)
        return keel_fail(KEEL_EARG, "a meeting of %d participants; it needs at least one", n);
    keel_meeting *m = keel_aligned_calloc(1, sizeof *m);
    if (!m) return KEEL_ENOMEM;
    m->n = n;
    m->spins = spins;
    *out = m;
    return KEEL_OK;
}

void keel_meeting_destroy(keel_meeting *m)
{
    keel_free(m);
}

void keel_meeting_wait(keel_meeting *m)
{
    if (m->n == 1) return;
    const uint32_t now = atomic_load_explicit(&m->generation, memory_order_acquire);
    if (atomic_fetch_add_explicit(&m->arrived, 1, memory_order_acq_rel) + 1 == (uint32_t)m->n) {
        atomic_store_explicit(&m->arrived, 0, memory_order_relaxed);
        atomic_store(&m->generation, now + 1);
        if (atomic_load(&m->sleepers))
            syscall(SYS_futex, &m->generation, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (int i = 0; i < m->spins; i++) {
        if (atomic_load_explicit(&m->generation, memory_order_acquire) != now) return;
        keel_relax();
    }
    atomic_fetch_add(&m->sleepers, 1);
    while (atomic_load(&m->generation) == now) /* the futex call compares again before sleeping */
        syscall(SYS_futex, &m->generation, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
    atomic_fetch_sub(&m->sleepers, 1);
}
