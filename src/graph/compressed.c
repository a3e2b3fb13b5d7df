/* Gradients that travel between processes as bfloat16, in half the bytes of float32.
 *
 * Each process rounds its own gradient, also the part that it adds itself: so the bits depend
 * neither on how buckets are cut, which is measured and differs from run to run, nor on who adds
 * what. The parts are added in float32, and the sum is rounded once. Its owner uses the rounded sum
 * as all others do, so weights stay equal. Rounding keeps infinity and NaN, which the votes before
 * the commit point look for.
 *
 * All gradients are rounded alike, those of small weights, too: the rounding is relative to each
 * number, and what they would cost is little either way. A row of a table that nobody asked for has
 * zeros, which stay zeros, so optimizers let it rest as before. Records of rows and sums of losses
 * are not gradients, and travel in double.
 *
 * Steps of shards are refused (train/strategy.c), so a process has one gradient at most, and they
 * are added from left to right (across.c). */
#include "base/clones.h"
#include "base/memory.h"
#include "graph/across.h"
#include "graph/buckets.h"

keel_status keel_compressed_create(keel_buckets *x, const keel_program *p)
{
    for (int i = 0; i < x->n_tile; i++)
        if (x->tile[i].count > x->sum_count) x->sum_count = x->tile[i].count;
    if (p->options.dry) return KEEL_OK;
    x->narrow = keel_aligned_calloc((size_t)p->n_grad + 1, sizeof *x->narrow);
    x->sum = keel_aligned_calloc((size_t)x->sum_count + 1, sizeof *x->sum);
    return x->narrow && x->sum ? KEEL_OK : KEEL_ENOMEM;
}

static float *wide(const keel_program *p, const keel_tile *t)
{
    return (float *)p->workspace[0].host.grad + t->offset;
}

void keel_compressed_round(const keel_program *p, const keel_tile *t)
{
    keel_bf16_narrow(p->across->buckets->narrow + t->offset, wide(p, t), t->count);
}

KEEL_CLONES static void add(float *restrict to, const keel_bf16 *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += keel_bf16_wide(from[i]);
}

void keel_compressed_add(const keel_program *p, const keel_bound *b, const keel_bucket *k,
                         const keel_tile *t)
{
    const keel_buckets *x = p->across->buckets;
    const keel_process_nodes *nodes = &b->gradient_nodes;
    const int me = p->lanes->process;
    const int64_t part = k->first[me + 1] - k->first[me], at = t->offset - k->first[me];
    const int n = p->gradient[t->variable].kind == KEEL_GRADIENT_MERGED ? 1 : nodes->n;
    for (int i = 0; i < n; i++) {
        const keel_bf16 *from = nodes->node[i].worker == me
                                    ? x->narrow + t->offset
                                    : (const keel_bf16 *)k->received + i * part + at;
        (i == 0 ? keel_bf16_widen : add)(x->sum, from, t->count);
    }
    keel_bf16_narrow(x->narrow + t->offset, x->sum, t->count);
}

void keel_buckets_take(const keel_program *p, const keel_tile *t)
{
    const keel_buckets *x = p->across->buckets;
    if (x->narrow) keel_bf16_widen(wide(p, t), x->narrow + t->offset, t->count);
}
