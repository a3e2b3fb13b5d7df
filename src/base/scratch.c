/* See scratch.h. */
#include "base/scratch.h"
#include "base/memory.h"

void *keel_scratch_reserve(keel_scratch *s, int i, size_t n_bytes)
{
    if (s->n_bytes[i] >= n_bytes && s->at[i]) return s->at[i];
    size_t n = s->n_bytes[i] + s->n_bytes[i] / 2;
    if (n < n_bytes) n = n_bytes;
    void *p = keel_calloc(1, n);
    if (!p) return NULL;
    keel_free(s->at[i]);
    s->at[i] = p;
    s->n_bytes[i] = n;
    return p;
}

void keel_scratch_free(keel_scratch *s)
{
    for (int i = 0; i < (int)(sizeof s->at / sizeof *s->at); i++) keel_free(s->at[i]);
    *s = (keel_scratch){ 0 };
}
