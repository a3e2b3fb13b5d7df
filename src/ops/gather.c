/* Rows of a table by index: ids [S] and a table [V, D] give [S, D]. Ids may have any type; the
 * fraction of a real one is dropped, and -1 is the last row, as in Keras (Embedding, ops.take). An
 * id outside the table fails the step. */
#ifndef REAL
#include "ops/infer.h"
#include <math.h>
#include <string.h>

static keel_status infer(keel_node *n)
{
    keel_spec ids = n->in ? n->in[0] : (keel_spec){ 0 };
    if (n->n_in != 1 || n->n_weight != 1)
        return keel_fail(KEEL_EARG, "gather: has %d inputs and %d weights, needs 1 and 1", n->n_in,
                         n->n_weight);
    const keel_shape *table = &n->weight[0].shape;
    if (table->rank != 2)
        return keel_fail(KEEL_ESHAPE, "gather: the table has %d dims, needs 2", table->rank);
    if (ids.dtype == KEEL_FLOAT32 && table->dim[0] > 1 << 24)
        return keel_fail(KEEL_EUNSUP, "gather: ids of float32 are exact up to 2^24, not up to %lld",
                         (long long)table->dim[0]);
    if (ids.shape.rank == KEEL_RANK_MAX)
        return keel_fail(KEEL_ESHAPE, "gather: ids of %d dims; there may be %d", ids.shape.rank,
                         KEEL_RANK_MAX - 1);
    ids.shape.dim[ids.shape.rank++] = table->dim[1];
    return keel_infer_out(n, &ids.shape);
}

/* What a call reads grows with its rows, not with the table. */
static int64_t weight_reads(const keel_node *n, int weight)
{
    (void)n;
    (void)weight;
    return 0;
}

/* The row of the table that place i reads. */
static bool row_of(const keel_call *c, int64_t i, int64_t rows, int64_t *row)
{
    int64_t id = 0;
    double real = 0;
    switch ((int)c->node->in[0].dtype) {
    case KEEL_INT64:
        id = ((const int64_t *)c->in[0])[i];
        break;
    case KEEL_INT32:
        id = ((const int32_t *)c->in[0])[i];
        break;
    case KEEL_UINT8:
    case KEEL_BOOL:
        id = ((const uint8_t *)c->in[0])[i];
        break;
    case KEEL_FLOAT64:
        real = trunc(((const double *)c->in[0])[i]);
        break;
    default:
        real = trunc(((const float *)c->in[0])[i]);
    }
    if (!(fabs(real) < 0x1p62))
        id = INT64_MAX; /* NaN, too */
    else if (real != 0)
        id = (int64_t)real;
    *row = id < 0 ? id + rows : id;
    if (*row >= 0 && *row < rows) return true;
    keel_call_failed(c, keel_fail(KEEL_EARG, "layer '%s': there is no row %lld in a table of %lld",
                                  c->node->layer, (long long)id, (long long)rows));
    return false;
}

#define REAL_FILE "ops/gather.c"
#include "ops/real.h"

const keel_op keel_op_gather = {
    .name = "gather",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .weights = REALS(weights),
    .weights_reads = KEEL_READS_IN,
    .weight_reads = weight_reads,
    .cases = (const keel_case[]){ { "5", "4,3", NULL },
                                  { "3,2", "7,1", NULL },
                                  { "1", "3,40", NULL },
                                  { NULL, NULL, NULL } },
};
#else
static void REAL_(forward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const int64_t rows = c->node->weight[0].shape.dim[0], d = c->node->weight[0].shape.dim[1];
    const REAL *table = c->weight[0];
    REAL *y = c->out[0];
    for (int64_t i = 0; i < count; i++) {
        int64_t row;
        if (row_of(c, i, rows, &row))
            memcpy(y + i * d, table + row * d, (size_t)d * sizeof(REAL));
        else
            memset(y + i * d, 0, (size_t)d * sizeof(REAL));
    }
}

/* No gradient flows through an integer. */
static void REAL_(backward)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    REAL *dx = c->in_grad[0];
    if (dx && !c->in_adds[0]) memset(dx, 0, (size_t)count * sizeof(REAL));
}

static void REAL_(weights)(const keel_call *c)
{
    const int64_t count = c->rows * keel_row_count(&c->node->in[0]);
    const int64_t rows = c->node->weight[0].shape.dim[0], d = c->node->weight[0].shape.dim[1];
    const REAL *dy = c->out_grad[0];
    REAL *dw = c->weight_grad[0];
    if (!dw) return;
    if (!c->weight_adds) memset(dw, 0, (size_t)(rows * d) * sizeof(REAL));
    for (int64_t i = 0; i < count; i++) {
        int64_t row;
        if (!row_of(c, i, rows, &row)) continue;
        for (int64_t k = 0; k < d; k++) dw[row * d + k] += dy[i * d + k];
    }
}
#endif
