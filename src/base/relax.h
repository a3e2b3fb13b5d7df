/* Between two polls of a thread that waits for others. */
#ifndef KEEL_BASE_RELAX_H
#define KEEL_BASE_RELAX_H

/* Leaves what the core can do at once to its other thread. */
static inline void keel_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
