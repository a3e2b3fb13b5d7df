/* Keras's kernel [TAPS, TAPS, c, k] to points. The file that includes this defines kernel_points(),
 * the transform of TAPS taps to SIDE points along one direction. */
#ifndef KEEL_OPS_X86_WINOGRAD_KERNEL_H
#define KEEL_OPS_X86_WINOGRAD_KERNEL_H
#include "ops/x86/_winograd_vector.h"

/* u [SIDE * SIDE][panels][channels][PANEL], each line of a panel the filters of one channel. Zero
 * where a panel or the last vector of channels is wider than the kernel. */
typedef struct packer {
    int64_t c, k;
    bool turned;  /* for backward: filters and channels exchanged, */
    bool rotated; /* and turned by 180 degrees */
} packer;

static int64_t packed_floats(int64_t c, int64_t k)
{
    return ceil_of(k, PANEL) * PANEL * ceil_of(c, LANES) * LANES;
}

/* Past the caches: a packed kernel of many channels would only displace what they hold. */
INLINE void store_past(float *p, vf x)
{
#ifdef __AVX512F__
    _mm512_stream_ps(p, x);
#else
    _mm256_stream_ps(p, x);
#endif
}

INLINE void kernel_store(const vf g[TAPS][TAPS], float *out, int64_t point, const bool past)
{
    vf t[TAPS][SIDE];
    EACH(i, TAPS) kernel_points(g[i], t[i]);
    EACH(j, SIDE) {
        vf column[TAPS], u[SIDE];
        EACH(i, TAPS) column[i] = t[i][j];
        kernel_points(column, u);
        EACH(i, SIDE) {
            if (past)
                store_past(out + (SIDE * i + j) * point, u[i]);
            else
                vf_store(out + (SIDE * i + j) * point, u[i]);
        }
    }
}

INLINE void pack_straight(const packer *k, const float *w, float *out, const bool past)
{
    const int64_t point = packed_floats(k->c, k->k), lines = ceil_of(k->c, LANES) * LANES;
    for (int64_t column = 0; column < ceil_of(k->k, PANEL) * PANEL; column += LANES)
        for (int64_t c = 0; c < lines; c++) {
            const vm m = vm_first(c < k->c && column < k->k ? k->k - column : 0);
            const float *at = w + c * k->k + column;
            float *to = out + (column / PANEL * lines + c) * PANEL + column % PANEL;
            vf g[TAPS][TAPS];
            EACH(i, TAPS)
                EACH(j, TAPS) g[i][j] = vf_load_some(m, at + (TAPS * i + j) * k->c * k->k);
            kernel_store((const vf(*)[TAPS])g, to, point, past);
        }
}

/* Pieces [LANES][LANES] of each tap are transposed. */
INLINE void pack_turned(const packer *k, const float *w, float *out, const bool past)
{
    const int64_t point = packed_floats(k->k, k->c), lines = ceil_of(k->k, LANES) * LANES;
    float piece[TAPS * TAPS][LANES][LANES];
    for (int64_t column = 0; column < ceil_of(k->c, PANEL) * PANEL; column += LANES)
        for (int64_t f = 0; f < lines; f += LANES) {
            const int64_t nc = at_most(k->c - column, LANES), nf = at_most(k->k - f, LANES);
            memset(piece, 0, sizeof piece);
            for (int tap = 0; tap < TAPS * TAPS; tap++)
                for (int64_t c = 0; c < nc; c++) {
                    const float *at = w + (tap * k->c + column + c) * k->k + f;
                    for (int64_t l = 0; l < nf; l++)
                        piece[k->rotated ? TAPS * TAPS - 1 - tap : tap][l][c] = at[l];
                }
            for (int l = 0; l < LANES; l++) {
                float *to = out + (column / PANEL * lines + f + l) * PANEL + column % PANEL;
                vf g[TAPS][TAPS];
                EACH(i, TAPS)
                    EACH(j, TAPS) g[i][j] = vf_load(piece[TAPS * i + j][l]);
                kernel_store((const vf(*)[TAPS])g, to, point, past);
            }
        }
}

static void refresh(const keel_derived *d, const void *weight)
{
    const packer *k = d->plan;
    const bool past = d->bytes > 1 << 20;
    if (k->turned && past) pack_turned(k, weight, d->data, true);
    if (k->turned && !past) pack_turned(k, weight, d->data, false);
    if (!k->turned && past) pack_straight(k, weight, d->data, true);
    if (!k->turned && !past) pack_straight(k, weight, d->data, false);
    if (past) _mm_sfence(); /* other workers read it after their next meeting */
}

/* Asks for the kernel at its points; o_c channels in, o_k filters out. */
static keel_status kernel_derive(keel_prepare *p, uint64_t key, bool rotated, int64_t o_c,
                                 int64_t o_k, const keel_derived **packed)
{
    packer *k = keel_calloc(1, sizeof *k);
    if (!k) return KEEL_ENOMEM;
    *k = (packer){ .c = p->node->in[0].shape.dim[2],
                   .k = p->node->out[0].shape.dim[2],
                   .turned = p->pass == KEEL_BACKWARD,
                   .rotated = rotated };
    keel_derived want = { .bytes = (size_t)(SIDE * SIDE * packed_floats(o_c, o_k)) * 4,
                          .weight = 0,
                          .key = key + k->turned + 2 * LANES,
                          .refresh = refresh,
                          .release = keel_free,
                          .plan = k };
    return p->derive(p->context, &want, packed);
}

#endif
