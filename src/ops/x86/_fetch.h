/* Lines that are written soon are prefetched for writing: else each would first wait until it has
 * come from memory, or until another core that has read it has given it up. */
#ifndef KEEL_OPS_X86_FETCH_H
#define KEEL_OPS_X86_FETCH_H
#include <stdbool.h>
#include <stdint.h>

/* A compiler makes this instruction of __builtin_prefetch only under a flag of its own. */
static inline void fetch_to_write(const void *p)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)p));
}

/* For a loop that writes one vector after the other, in all more bytes than the first-level cache
 * keeps (far): the line that is written FETCH_AHEAD bytes later, which may lie behind the end.
 * Measured on an Intel processor with AVX-512: 2 to 16 KiB are alike, and in a network, where each
 * output lies elsewhere, it also pays for outputs that a later cache would keep. */
enum { FETCH_AHEAD = 8192, FETCH_FAR = 1 << 16 };

static inline void fetch_to_write_ahead(const void *p, bool far)
{
    if (far) fetch_to_write((const void *)((uintptr_t)p + FETCH_AHEAD));
}

#endif
