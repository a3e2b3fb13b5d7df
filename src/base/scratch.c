/* See scratch.h. */
#include "base/scratch.h"
#include "base/memory.h"

void *keel_scratch_reserve(keel_scratch *s, int i, size_t n_bytes)
{
    if (s->n_bytes[i] >= n_bytes && s->at[i]) return s->at[i];
    size_t n = s->n_bytes[i] + s->n_bytes[i] / 2;
    if (n < n_bytes) n = n_bytes;
    if (s->account && !keel_account_try(s->account, (int64_t)n)) { /* the old one first, no spare */
        n = n_bytes;
        keel_free(s->at[i]);
        keel_account_give(s->account, (int64_t)s->n_bytes[i]);
        s->at[i] = NULL;
        s->n_bytes[i] = 0;
        if (!keel_account_take(s->account, (int64_t)n)) return NULL;
    }
    void *p = keel_calloc(1, n);
    if (!p) {
        keel_account_give(s->account, (int64_t)n);
        return NULL;
    }
    keel_free(s->at[i]);
    keel_account_give(s->account, (int64_t)s->n_bytes[i]);
    s->at[i] = p;
    s->n_bytes[i] = n;
    return p;
}

keel_scratch *keel_scratch_inner(keel_scratch *s)
{
    if (!s->inner && (s->inner = keel_calloc(1, sizeof *s->inner))) s->inner->account = s->account;
    if (s->inner) {
        s->inner->probe = s->probe;
        s->inner->trail = s->trail;
    }
    return s->inner;
}

void keel_scratch_free(keel_scratch *s)
{
    if (s->inner) keel_scratch_free(s->inner);
    keel_free(s->inner);
    for (int i = 0; i < (int)(sizeof s->at / sizeof *s->at); i++) {
        keel_free(s->at[i]);
        keel_account_give(s->account, (int64_t)s->n_bytes[i]);
    }
    *s = (keel_scratch){ .trail = s->trail, .probe = s->probe, .account = s->account };
}
