/* Shapes may come from files. keel_shape_check checks them once; afterwards they are trusted. */
#include "tensor/shape.h"
#include "base/error.h"
#include "base/memory.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* If the rank is too high it is kept, so that keel_shape_check refuses it; the dims are not. */
keel_shape keel_shape_of(int rank, const int64_t *dims)
{
    keel_shape s = { .rank = rank };
    for (int i = 0; i < rank && i < KEEL_RANK_MAX; i++) s.dim[i] = dims[i];
    return s;
}

int64_t keel_shape_count(const keel_shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) n *= s->dim[i];
    return n;
}

keel_status keel_shape_check(const keel_shape *s, size_t element_size)
{
    char text[96];
    if (s->rank < 0 || s->rank > KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "a shape of rank %d; the rank must be 0 to %d", s->rank,
                         KEEL_RANK_MAX);
    keel_shape_text(text, s);
    /* Dims of 0 are skipped, so that the order of dims does not decide on overflow. */
    int64_t bytes = element_size > PTRDIFF_MAX ? -1 : (int64_t)element_size;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return keel_fail(KEEL_ESHAPE, "shape %s: dimension %d is negative", text, i);
        if (s->dim[i] > 0 && !keel_mul_i64(bytes, s->dim[i], &bytes))
            return keel_fail(KEEL_ESHAPE,
                             "shape %s of %zu-byte elements is larger than the address space", text,
                             element_size);
    }
    return KEEL_OK;
}

bool keel_shape_equal(const keel_shape *a, const keel_shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

bool keel_shape_is_open(const keel_shape *s)
{
    for (int i = 0; i < s->rank && i < KEEL_RANK_MAX; i++)
        if (s->dim[i] == KEEL_DIM_OPEN) return true;
    return false;
}

keel_shape keel_shape_closed(const keel_shape *s, int64_t dim)
{
    keel_shape closed = *s;
    for (int i = 0; i < s->rank && i < KEEL_RANK_MAX; i++)
        if (s->dim[i] == KEEL_DIM_OPEN) closed.dim[i] = dim;
    return closed;
}

void keel_shape_text(char out[96], const keel_shape *s)
{
    char all[192]; /* six dims of 20 digits fit */
    int n = snprintf(all, sizeof all, "(");
    for (int i = 0; i < s->rank && i < KEEL_RANK_MAX; i++)
        if (s->dim[i] == KEEL_DIM_OPEN)
            n += snprintf(all + n, sizeof all - (size_t)n, "%sNone", i ? ", " : "");
        else
            n += snprintf(all + n, sizeof all - (size_t)n, "%s%" PRId64, i ? ", " : "", s->dim[i]);
    if (s->rank > KEEL_RANK_MAX) n += snprintf(all + n, sizeof all - (size_t)n, ", ...");
    n += snprintf(all + n, sizeof all - (size_t)n, s->rank == 1 ? ",)" : ")");
    if (n < 96) {
        memcpy(out, all, (size_t)n + 1);
    } else {
        memcpy(out, all, 91);
        memcpy(out + 91, "...)", 5);
    }
}
