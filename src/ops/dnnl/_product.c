/* Products with the weights by oneDNN's sgemm, on Keras's own [C, K] weights: dense, and conv2d
 * with 1x1 windows, where a place is a pixel.
 *
 * Measured on one core with AVX-512 (2.6.3). Dense, over 784>512, 512>512, 512>10, 1600>128,
 * 2048>1000 and 1 to 128 rows: forward and weight gradient are within 8 % of the inner product
 * primitives on packed weights, packing not counted (packing 784>512 takes 30 us a step, forward of
 * 64 rows 190 us). The one slow case is backward, whose right operand is stored transposed and
 * packed by each call: 105 us at 16 rows against 54 us with a transposed copy. Such a copy is kept
 * (keel_derived) where it pays: for dense up to 512 places (3.2.0, backward of 512 places of
 * 384>384: 571 us with the copy, 603 without, and 92 us a step to make it).
 *
 * A row's result must not depend on the rows beside it, or one device and several differ in the
 * last bit, which BatchNorm over two rows lets grow to 1e-3 in forty steps. sgemm keeps to that but
 * for two cases (2.6.3, all sizes above), which are led round: a right operand that is transposed
 * where rows are fewer than 16, which is transposed beforehand, and a single row, which goes as
 * two.
 *
 * 1x1 windows, over ResNet-50's: weight gradient 200-270 GFLOP/s against 95-200 of the convolution
 * primitive, backward 245-280 against 190-240, and neither needs packed weights; forward even, but
 * for a bias, which the primitive adds on its way: there it stays. */
#include "ops/dnnl/_product.h"
#include "base/memory.h"
#include "device/cpu/dnnl.h"
#include "ops/args.h"
#include <string.h>

typedef float four __attribute__((vector_size(16)));

typedef struct plan {
    int64_t c, k;
    int64_t places;                 /* of one row of the output */
    int64_t w, row, line, step;     /* of a strided window, else 0: see gather() */
    const keel_derived *transposed; /* [K, C]; NULL: none */
    bool transposes;                /* each backward does, into scratch */
} plan;

/* to [4, 4] = the transpose of from [4, 4]; rows lie so many floats apart. */
static inline void turn_four(float *to, int64_t to_row, const float *from, int64_t row)
{
    four a[4], b[4];
    for (int r = 0; r < 4; r++) memcpy(&a[r], from + r * row, sizeof *a);
    b[0] = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
    b[1] = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
    b[2] = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
    b[3] = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
    a[0] = __builtin_shufflevector(b[0], b[1], 0, 1, 4, 5);
    a[1] = __builtin_shufflevector(b[0], b[1], 2, 3, 6, 7);
    a[2] = __builtin_shufflevector(b[2], b[3], 0, 1, 4, 5);
    a[3] = __builtin_shufflevector(b[2], b[3], 2, 3, 6, 7);
    for (int r = 0; r < 4; r++) memcpy(to + r * to_row, &a[r], sizeof *a);
}

/* Squares that fit the first-level cache on both sides; in them, vectors of four by four. */
static void transpose(const plan *size, const float *w, float *t)
{
    enum { TILE = 32, SIDE = 4 };
    const int64_t c = size->c, k = size->k;
    for (int64_t i0 = 0; i0 < c; i0 += TILE)
        for (int64_t j0 = 0; j0 < k; j0 += TILE) {
            const int64_t i1 = i0 + TILE < c ? i0 + TILE : c;
            const int64_t j1 = j0 + TILE < k ? j0 + TILE : k;
            int64_t i = i0;
            for (; i + SIDE <= i1; i += SIDE) {
                int64_t j = j0;
                for (; j + SIDE <= j1; j += SIDE) turn_four(t + j * c + i, c, w + i * k + j, k);
                for (; j < j1; j++)
                    for (int r = 0; r < SIDE; r++) t[j * c + i + r] = w[(i + r) * k + j];
            }
            for (; i < i1; i++)
                for (int64_t j = j0; j < j1; j++) t[j * c + i] = w[i * k + j];
        }
}

static void refresh(const keel_derived *d, const void *weight)
{
    transpose(d->plan, weight, d->data);
}

void keel_product_dnnl_release(void *p)
{
    keel_free(p);
}

static keel_status derive(keel_prepare *p, plan *pl)
{
    plan *size = keel_calloc(1, sizeof *size);
    if (!size) return KEEL_ENOMEM;
    *size = *pl;
    keel_derived want = { .bytes = (size_t)(pl->c * pl->k) * sizeof(float),
                          .key = 0x5452414e53504f53, /* not the hash of a layout */
                          .refresh = refresh,
                          .release = keel_product_dnnl_release,
                          .plan = size };
    return p->derive(p->context, &want, &pl->transposed);
}

keel_status keel_product_dnnl_prepare(keel_prepare *p, const int64_t stride[2])
{
    const keel_node *n = p->node;
    const keel_shape *w = &n->weight[0].shape;
    const bool strided = stride && (stride[0] > 1 || stride[1] > 1);
    if (n->real != KEEL_FLOAT32 || p->rows < 1 || p->pass > KEEL_WEIGHTS) return KEEL_EUNSUP;
    if (strided && p->pass != KEEL_WEIGHTS) return KEEL_EUNSUP;
    plan *pl = keel_calloc(1, sizeof *pl);
    if (!pl) return KEEL_ENOMEM;
    *pl = (plan){ .c = w->dim[w->rank - 2], .k = w->dim[w->rank - 1] };
    pl->places = keel_row_count(&n->out[0]) / pl->k;
    p->scratch = 0;
    if (strided) {
        const int64_t *x = n->in[0].shape.dim;
        pl->w = n->out[0].shape.dim[1];
        pl->row = x[0] * x[1] * pl->c;
        pl->line = stride[0] * x[1] * pl->c;
        pl->step = stride[1] * pl->c;
        p->scratch = p->rows * pl->places * pl->c * (int64_t)sizeof(float);
    }
    const int64_t places = p->rows * pl->places, most = stride ? 256 : 512;
    keel_status s = KEEL_OK;
    if (places == 1) p->scratch = 2 * (pl->c + pl->k) * (int64_t)sizeof(float);
    if (p->pass == KEEL_BACKWARD && places <= most && pl->c * pl->k >= 16384) {
        s = derive(p, pl);
    } else if (p->pass == KEEL_BACKWARD && places < 16) {
        pl->transposes = true;
        p->scratch += pl->c * pl->k * (int64_t)sizeof(float);
    }
    if (s < 0)
        keel_free(pl);
    else
        p->plan = pl;
    return s;
}

static void check(const keel_call *c, keel_status s)
{
    if (s < 0) keel_call_failed(c, s);
}

/* y[n, out] = x[n, in] b, or +=. to: scratch for two rows of x and of y if n is 1. */
static void product(const keel_call *c, int64_t n, int64_t in, int64_t out, const float *x,
                    const float *b, bool b_transposed, bool adds, float *y, float *to)
{
    const int64_t ldb = b_transposed ? in : out;
    if (n != 1) {
        check(c, keel_dnnl_sgemm(false, b_transposed, n, out, in, x, in, b, ldb, adds, y, out));
        return;
    }
    float *y2 = to + 2 * in;
    for (int i = 0; i < 2; i++) {
        memcpy(to + i * in, x, (size_t)in * sizeof *x);
        memcpy(y2 + i * out, y, (size_t)out * sizeof *y); /* read only if it adds */
    }
    check(c, keel_dnnl_sgemm(false, b_transposed, 2, out, in, to, in, b, ldb, adds, y2, out));
    memcpy(y, y2, (size_t)out * sizeof *y);
}

/* The bias first, then the product is added, a stretch of places at a time, which stays in the
 * cache. */
void keel_product_dnnl_forward(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t n = c->rows * pl->places, stretch = 512;
    const float *x = c->in[0], *bias = c->node->n_weight > 1 ? c->weight[1] : NULL;
    float *y = c->out[0];
    for (int64_t i = 0, some; i < n; i += some) {
        some = bias && n - i >= 2 * stretch ? stretch : n - i;
        for (int64_t j = i; bias && j < i + some; j++)
            memcpy(y + j * pl->k, bias, (size_t)pl->k * sizeof *y);
        product(c, some, pl->c, pl->k, x + i * pl->c, c->weight[0], false, bias, y + i * pl->k,
                c->scratch);
    }
}

void keel_product_dnnl_backward(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t n = c->rows * pl->places;
    const float *w = c->weight[0];
    float *dx = c->in_grad[0], *to = c->scratch;
    const bool turned = pl->transposed || pl->transposes;
    if (!dx) return;
    if (pl->transposed) w = pl->transposed->data;
    if (pl->transposes) {
        transpose(pl, w, to);
        w = to;
        to += pl->c * pl->k;
    }
    product(c, n, pl->k, pl->c, c->out_grad[0], w, !turned, c->in_adds[0], dx, to);
}

/* The pixels that a strided window reads, one after another. */
static const float *gather(const plan *pl, const float *x, float *to, int64_t rows)
{
    const float *const start = to;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < pl->places; i++, to += pl->c)
            memcpy(to, x + row * pl->row + i / pl->w * pl->line + i % pl->w * pl->step,
                   (size_t)pl->c * sizeof *to);
    return start;
}

/* db[j] += sum of dy[i][j], in stretches, because a long float32 sum loses small terms. */
static void add_places(float *db, const float *dy, int64_t n, int64_t k)
{
    enum { STRETCH = 128, SIDE = 32 };
    for (int64_t i0 = 0; i0 < n; i0 += STRETCH)
        for (int64_t j0 = 0; j0 < k; j0 += SIDE) {
            const int64_t i1 = i0 + STRETCH < n ? i0 + STRETCH : n;
            const int64_t side = j0 + SIDE < k ? SIDE : k - j0;
            float sum[SIDE] = { 0 };
            if (side == SIDE)
                for (int64_t i = i0; i < i1; i++)
                    for (int64_t j = 0; j < SIDE; j++) sum[j] += dy[i * k + j0 + j];
            else
                for (int64_t i = i0; i < i1; i++)
                    for (int64_t j = 0; j < side; j++) sum[j] += dy[i * k + j0 + j];
            for (int64_t j = 0; j < side; j++) db[j0 + j] += sum[j];
        }
}

void keel_product_dnnl_weights(const keel_call *c)
{
    const plan *pl = c->plan;
    const int64_t n = c->rows * pl->places;
    const float *x = c->in[0], *dy = c->out_grad[0];
    float *dw = c->weight_grad[0], *db = c->node->n_weight > 1 ? c->weight_grad[1] : NULL;
    if (dw && pl->w) x = gather(pl, x, c->scratch, c->rows);
    if (dw)
        check(c, keel_dnnl_sgemm(true, false, pl->c, pl->k, n, x, pl->c, dy, pl->k, c->weight_adds,
                                 dw, pl->k));
    if (!db) return;
    if (!c->weight_adds) memset(db, 0, (size_t)pl->k * sizeof *db);
    add_places(db, dy, n, pl->k);
}
