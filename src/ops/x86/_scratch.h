/* Parts of a call's scratch. The same function takes them in prepare, where `next` is NULL and only
 * the sum is of interest, and in the call. */
#ifndef KEEL_OPS_X86_SCRATCH_H
#define KEEL_OPS_X86_SCRATCH_H
#include <stddef.h>
#include <stdint.h>

typedef struct floats {
    float *next;
    int64_t count;
} floats;

/* n floats, that begin a cache line if scratch does. */
static inline float *take(floats *f, int64_t n)
{
    float *const part = f->next ? f->next + f->count : NULL;
    f->count += (n + 15) / 16 * 16;
    return part;
}

#endif
