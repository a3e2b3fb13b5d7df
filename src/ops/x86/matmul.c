/* Products of the matrices within rows, as attention with scores has them.
 *
 *     y [M, N] = a [M, K] b [K, N];  da = dy bt;  db = at dy
 *
 * In float32 all three are products of p, whose elements are read one by one, wherever they lie,
 * and q, whose rows are vectors (_product.h); bt is made in scratch. Matrices of bfloat16 values
 * are widened one at a time, and their products are rounded products where those are faster:
 * nothing is rounded again before the result. */
#ifndef VALUE
#include "ops/x86/_rounded.h"
#include "ops/x86/_product.h"
#include "ops/x86/_scratch.h"
#include "ops/x86/_turn.h"

KEEL_USES_OP(matmul);

typedef struct sizes {
    int64_t matrices, m, k, n;
} sizes;

static sizes sizes_of(const keel_node *node, int64_t rows)
{
    const keel_shape *a = &node->in[0].shape, *b = &node->in[1].shape;
    const int64_t m = a->dim[a->rank - 2], k = a->dim[a->rank - 1];
    return (sizes){ rows * (keel_row_count(&node->in[0]) / (m * k)), m, k, b->dim[b->rank - 1] };
}

typedef struct room {
    const keel_rounded *by;     /* NULL: in float32 */
    float *bt;                  /* [N, K] */
    float *a, *b, *dy, *out;    /* narrow values, widened; one result */
    uint32_t *packed, *product; /* of rounded products */
} room;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static room room_in(floats *f, const keel_node *node, bool backward)
{
    const sizes s = sizes_of(node, 1);
    const bool narrow = node->held == KEEL_BFLOAT16;
    room r = { .by = keel_rounded_of(node) };
    if (backward && !r.by) r.bt = take(f, s.n * s.k);
    if (!narrow) return r;
    r.a = take(f, s.m * s.k);
    r.b = take(f, s.k * s.n);
    r.dy = take(f, backward ? s.m * s.n : 0);
    r.out = take(f, backward ? larger(s.m, s.n) * s.k : s.m * s.n);
    if (!r.by) return r;
    r.packed = (uint32_t *)take(f, larger(r.by->words(s.k, s.n), r.by->words(s.n, s.k)));
    r.product = (uint32_t *)take(f, larger(larger(r.by->words(s.k, s.m), r.by->words(s.n, s.m)),
                                           r.by->words(s.m, s.k) + r.by->words(s.m, s.n)));
    return r;
}

static keel_status prepare(keel_prepare *p)
{
    floats f = { 0 };
    KEEL_TRY(vector_prepare(p));
    if (p->pass > KEEL_BACKWARD) return KEEL_EUNSUP;
    room_in(&f, p->node, p->pass == KEEL_BACKWARD);
    p->scratch = f.count * (int64_t)sizeof(float);
    return KEEL_OK;
}

/* out (+)= a b */
static void multiply_both(const room *r, const sizes *s, const float *a, const float *b, float *out)
{
    if (r->by) {
        r->by->pack(r->packed, b, s->n, s->k, s->n);
        r->by->multiply(&(keel_rounded_product){ .a = a,
                                                 .a_row = s->k,
                                                 .n = s->m,
                                                 .lines = s->k,
                                                 .columns = s->n,
                                                 .out = out,
                                                 .out_row = s->n,
                                                 .room = r->product },
                        r->packed, NULL);
        return;
    }
    multiply(&(product){ .p = a,
                         .q = b,
                         .p_row = s->k,
                         .p_step = 1,
                         .q_row = s->n,
                         .inner = s->k,
                         .rows = s->m,
                         .columns = s->n,
                         .out = out,
                         .out_row = s->n });
}

/* da (+)= dy bt; turns: bt is not there yet */
static void give_left(const room *r, const sizes *s, const float *b, const float *dy, float *da,
                      bool adds, bool turns)
{
    if (r->by) {
        r->by->pack_transpose(r->packed, b, s->n, s->n, s->k);
        r->by->multiply(&(keel_rounded_product){ .a = dy,
                                                 .a_row = s->n,
                                                 .n = s->m,
                                                 .lines = s->n,
                                                 .columns = s->k,
                                                 .out = da,
                                                 .out_row = s->k,
                                                 .adds = adds,
                                                 .room = r->product },
                        r->packed, NULL);
        return;
    }
    if (turns) turn_matrix(r->bt, b, s->k, s->n);
    multiply(&(product){ .p = dy,
                         .q = r->bt,
                         .p_row = s->n,
                         .p_step = 1,
                         .q_row = s->k,
                         .inner = s->n,
                         .rows = s->m,
                         .columns = s->k,
                         .out = da,
                         .out_row = s->k,
                         .adds = adds });
}

/* db (+)= at dy; some: of its columns */
static void give_right(const room *r, const sizes *s, const float *a, const float *dy, float *db,
                       bool adds, keel_columns some)
{
    if (r->by) {
        r->by->multiply_lines(&(keel_rounded_product){ .a = a,
                                                       .a_row = s->k,
                                                       .n = s->k,
                                                       .lines = s->m,
                                                       .columns = s->n,
                                                       .out = db,
                                                       .out_row = s->n,
                                                       .adds = adds,
                                                       .room = r->product },
                              dy, s->n);
        return;
    }
    multiply(&(product){ .p = a,
                         .q = dy + some.first,
                         .p_row = 1,
                         .p_step = s->k,
                         .q_row = s->n,
                         .inner = s->m,
                         .rows = s->k,
                         .columns = some.count > 0 ? some.count : s->n,
                         .out = db + some.first,
                         .out_row = s->n,
                         .adds = adds });
}

#define VALUE_FILE "ops/x86/matmul.c"
#include "ops/x86/_values.h"

VECTOR_BOTH(matmul, prepare);
#else
/* Where a result in float32 is made, and whether it is added to what is there. */
static float *VALUE_(begun)(const room *r, VALUE *to)
{
    return r->out ? r->out : (void *)to;
}

/* Stores a result that was not made in its place. */
static void VALUE_(stored)(const room *r, VALUE *to, int64_t n, bool adds)
{
    if (r->out) VECTOR_MOVE(to, r->out, n, adds);
}

static void VALUE_(forward)(const keel_call *c)
{
    const sizes s = sizes_of(c->node, c->rows);
    const room r = room_in(&(floats){ .next = c->scratch }, c->node, false);
    const VALUE *a = c->in[0], *b = c->in[1];
    VALUE *y = c->out[0];
    for (int64_t t = 0; t < s.matrices; t++, a += s.m * s.k, b += s.k * s.n, y += s.m * s.n) {
        multiply_both(&r, &s, vx_floats(a, r.a, s.m * s.k), vx_floats(b, r.b, s.k * s.n),
                      VALUE_(begun)(&r, y));
        VALUE_(stored)(&r, y, s.m * s.n, false);
    }
}

static void VALUE_(backward)(const keel_call *c)
{
    const sizes s = sizes_of(c->node, c->rows);
    const room r = room_in(&(floats){ .next = c->scratch }, c->node, true);
    const int64_t in_a = s.m * s.k, in_b = s.k * s.n, out = s.m * s.n;
    for (int64_t t = 0; t < s.matrices; t++) {
        const float *a = vx_floats((const VALUE *)c->in[0] + t * in_a, r.a, in_a);
        const float *b = vx_floats((const VALUE *)c->in[1] + t * in_b, r.b, in_b);
        const float *dy = vx_floats((const VALUE *)c->out_grad[0] + t * out, r.dy, out);
        if (c->in_grad[0]) {
            VALUE *da = (VALUE *)c->in_grad[0] + t * in_a;
            give_left(&r, &s, b, dy, VALUE_(begun)(&r, da), !r.out && c->in_adds[0],
                      c->node->in[1].shape.rank > 2 || !c->scratch_ready);
            VALUE_(stored)(&r, da, in_a, c->in_adds[0]);
        }
        if (c->in_grad[1]) {
            VALUE *db = (VALUE *)c->in_grad[1] + t * in_b;
            give_right(&r, &s, a, dy, VALUE_(begun)(&r, db), !r.out && c->in_adds[1], c->columns);
            VALUE_(stored)(&r, db, in_b, c->in_adds[1]);
        }
    }
}
#endif
