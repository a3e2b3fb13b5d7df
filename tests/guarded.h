/* Operands of a kernel under test: random numbers between NaN, or where memory ends, so that what
 * is read or written outside of them is noticed. */
#ifndef KEEL_TESTS_GUARDED_H
#define KEEL_TESTS_GUARDED_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include "base/memory.h"
#include "tensor/bfloat16.h"

enum { GUARD = 64 }; /* elements on either side */

static uint32_t state = 1;
static inline float drawn(void) /* -1 .. 1 */
{
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1;
}

/* n elements between NaN; freed by guarded_free. */
static inline void *guarded(int64_t n, int64_t size)
{
    char *all = keel_calloc((size_t)(n + 2 * GUARD), (size_t)size);
    assert_non_null(all);
    memset(all, 0xff, (size_t)((n + 2 * GUARD) * size));
    return all + GUARD * size;
}

static inline void check_guards(const void *x, int64_t n, int64_t size)
{
    const char *before = (const char *)x - GUARD * size, *behind = (const char *)x + n * size;
    for (int64_t i = 0; i < GUARD * size; i++)
        if (before[i] != (char)0xff || behind[i] != (char)0xff)
            fail_msg("something was written outside of a result");
}

static inline void guarded_free(const void *x, int64_t size)
{
    keel_free((char *)x - GUARD * size);
}

static inline keel_bf16 *values(int64_t n)
{
    keel_bf16 *x = guarded(n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = keel_bf16_round(drawn());
    return x;
}

static inline float *floats(int64_t n)
{
    float *x = guarded(n, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = drawn();
    return x;
}

/* Values behind which a read fails. */
static inline size_t pages_of(int64_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return ((size_t)n * sizeof(keel_bf16) + page - 1) / page * page;
}

static inline keel_bf16 *last_values(int64_t n)
{
    const size_t bytes = pages_of(n), page = (size_t)sysconf(_SC_PAGESIZE);
    char *all =
        mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    assert_int_equal(mprotect(all + bytes, page, PROT_NONE), 0);
    memset(all, 0xff, bytes);
    keel_bf16 *x = (keel_bf16 *)(void *)(all + bytes) - n;
    for (int64_t i = 0; i < n; i++) x[i] = keel_bf16_round(drawn());
    return x;
}

static inline void last_values_free(keel_bf16 *x, int64_t n)
{
    const size_t bytes = pages_of(n);
    munmap((char *)(x + n) - bytes, bytes + (size_t)sysconf(_SC_PAGESIZE));
}

#endif
