/* A barrier by generations. Everybody reads the generation, then arrives; the last to arrive makes
 * the next generation, which lets the others go. Who has spun in vain counts itself a sleeper
 * before it looks a last time; the last to arrive changes the generation before it looks for
 * sleepers: both in one total order, so one of them sees the other and no wake-up is lost. */
#include "base/meeting.h"
#include "base/memory.h"
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CACHE_LINE = 64 };

struct keel_meeting {
    int n, spins;                                     /* never change */
    _Alignas(CACHE_LINE) _Atomic uint32_t arrived;    /* by everybody; zeroed by the last */
    _Alignas(CACHE_LINE) _Atomic uint32_t generation; /* by the last to arrive; the futex word */
    _Alignas(CACHE_LINE) _Atomic uint32_t sleepers;   /* by who goes to sleep and wakes up */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

keel_status keel_meeting_create(keel_meeting **out, int n, int spins)
{
    if (n < 1) return keel_fail(KEEL_EARG, "a meeting of %d; it takes one at least", n);
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
        relax();
    }
    atomic_fetch_add(&m->sleepers, 1);
    while (atomic_load(&m->generation) == now) /* the kernel looks again before it lets us sleep */
        syscall(SYS_futex, &m->generation, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
    atomic_fetch_sub(&m->sleepers, 1);
}
