/* FNV-1a, for numbers that processes compare. Not for input that somebody may choose to collide. */
#ifndef KEEL_CLI_FNV_H
#define KEEL_CLI_FNV_H
#include <stddef.h>
#include <stdint.h>

#define FNV_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t fnv_add(uint64_t sum, const void *data, size_t n)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < n; i++) sum = (sum ^ byte[i]) * UINT64_C(0x100000001b3);
    return sum;
}

#endif
