/* Rows of a table by index: ids [S] and a table [V, D] give [S, D]. Ids may have any type; the
 * fraction of a real one is dropped, and -1 is the last row, as in Keras (Embedding, ops.take). An
 * id outside the table fails the step. */
#ifndef REAL
#include "ops/gather.h"
#include "base/memory.h"
#include "ops/infer.h"
#include "tensor/bfloat16.h"
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

/* The row of the table that id i reads; negative ids count from the end. It may not exist. */
static int64_t asked_row(keel_dtype dtype, const void *ids, int64_t i, int64_t rows)
{
    int64_t id = 0;
    double real = 0;
    switch ((int)dtype) {
    case KEEL_INT64:
        id = ((const int64_t *)ids)[i];
        break;
    case KEEL_INT32:
        id = ((const int32_t *)ids)[i];
        break;
    case KEEL_UINT8:
    case KEEL_BOOL:
        id = ((const uint8_t *)ids)[i];
        break;
    case KEEL_FLOAT64:
        real = trunc(((const double *)ids)[i]);
        break;
    case KEEL_BFLOAT16: /* of a tile; other passes get narrow ids widened */
        real = trunc(keel_bf16_wide(((const keel_bf16 *)ids)[i]));
        break;
    default:
        real = trunc(((const float *)ids)[i]);
    }
    if (!(fabs(real) < 0x1p62))
        id = INT64_MAX; /* NaN, too */
    else if (real != 0)
        id = (int64_t)real;
    return id < 0 ? id + rows : id;
}

bool keel_gather_row(const keel_call *c, int64_t i, int64_t rows, int64_t *row)
{
    *row = asked_row(c->node->in[0].dtype, c->in[0], i, rows);
    if (*row >= 0 && *row < rows) return true;
    const int64_t id = *row < 0 ? *row - rows : *row;
    keel_call_failed(c, keel_fail(KEEL_EARG, "layer '%s': there is no row %lld in a table of %lld",
                                  c->node->layer, (long long)id, (long long)rows));
    return false;
}

/* ---- gradients of the rows that were asked for ------------------------------------------------
 *
 * A table may be far larger than what a step asks for. The owner of a tile of it makes a list of
 * all places of the step, sorted by the rows they ask for, once for all of its tiles; then a tile
 * costs what was asked of it. Places that ask for one row stay in their order, so no cut of the
 * step changes a bit. */
typedef struct place {
    int64_t row;
    const char *dy;
} place;

static int64_t tile_scratch(const keel_node *n, int64_t rows)
{
    int64_t places;
    const int64_t each = 2 * (int64_t)sizeof(place);
    if (!keel_mul_i64(rows, keel_row_count(&n->in[0]), &places) ||
        !keel_mul_i64(places + 1, each, &places))
        return INT64_MAX;
    return places;
}

/* Radix sort, which keeps the order of equals; the result may lie in either half of the room. */
static place *sort(place *list, place *room, int64_t n, int64_t rows)
{
    enum { BITS = 11, BINS = 1 << BITS };
    for (int shift = 0; shift < 63 && (rows - 1) >> shift > 0; shift += BITS) {
        int64_t begin[BINS + 1] = { 0 };
        for (int64_t i = 0; i < n; i++) begin[(list[i].row >> shift & (BINS - 1)) + 1]++;
        for (int b = 0; b < BINS; b++) begin[b + 1] += begin[b];
        for (int64_t i = 0; i < n; i++) room[begin[list[i].row >> shift & (BINS - 1)]++] = list[i];
        place *swapped = list;
        list = room;
        room = swapped;
    }
    return list;
}

/* The step's places in the order of rows, {count, their list} at the begin of the scratch. */
static const place *list_places(const keel_tile_call *c, int64_t *count)
{
    place *head = c->scratch;
    if (!c->scratch_ready) {
        const keel_node *n = c->node;
        const int64_t rows = n->weight[0].shape.dim[0], ids = keel_row_count(&n->in[0]);
        const size_t element = keel_dtype_size(n->held == KEEL_BFLOAT16 ? n->held : n->real);
        const size_t bytes = element * (size_t)n->weight[0].shape.dim[1];
        int64_t all = 0, made = 0;
        for (int s = 0; s < c->n_span; s++) all += c->span[s].rows * ids;
        for (int s = 0; s < c->n_span; s++)
            for (int64_t i = 0; i < c->span[s].rows * ids; i++) {
                const int64_t row = asked_row(n->in[0].dtype, c->span[s].in, i, rows);
                if (row < 0 || row >= rows) continue; /* forward failed the step */
                head[1 + made++] =
                    (place){ row, (const char *)c->span[s].out_grad + (size_t)i * bytes };
            }
        *head = (place){ made, (const char *)sort(head + 1, head + 1 + all, made, rows) };
    }
    *count = head->row;
    return (const place *)(const void *)head->dy;
}

/* The first of the places whose row is not below `row`. */
static int64_t first_from(const place *list, int64_t n, int64_t row)
{
    int64_t low = 0;
    while (low < n) {
        const int64_t middle = low + (n - low) / 2;
        if (list[middle].row < row)
            low = middle + 1;
        else
            n = middle;
    }
    return low;
}

void keel_gather_tile(const keel_tile_call *c, size_t element,
                      void (*add)(void *sum, const void *dy, int64_t d))
{
    const int64_t d = c->node->weight[0].shape.dim[1];
    int64_t from = c->first / d, to = (c->first + c->count) / d;
    int64_t n;
    const place *list = list_places(c, &n);
    int64_t i = first_from(list, n, from);
    if (c->part) { /* neighbouring rows that are asked for */
        int64_t end = i;
        *c->part = (keel_tile_part){ 0 };
        if (i == n || list[i].row >= to) return;
        c->part->skip = (list[i].row - from) * d;
        from = list[i].row;
        while (end < n && list[end].row < to &&
               list[end].row <= list[end > i ? end - 1 : i].row + 1)
            end++;
        to = list[end - 1].row + 1;
        c->part->count = (to - from) * d;
    }
    const size_t bytes = (size_t)d * element;
    memset(c->grad, 0, (size_t)(to - from) * bytes);
    for (; i < n && list[i].row < to; i++)
        add((char *)c->grad + (size_t)(list[i].row - from) * bytes, list[i].dy, d);
}

#define REAL_FILE "ops/gather.c"
#include "ops/real.h"

const keel_op keel_op_gather = {
    .name = "gather",
    .infer = infer,
    .forward = REALS(forward),
    .backward = REALS(backward),
    .weights = REALS(weights),
    .weights_tile = REALS(weights_tile),
    .tile_scratch = tile_scratch,
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
        if (keel_gather_row(c, i, rows, &row))
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
        if (!keel_gather_row(c, i, rows, &row)) continue;
        for (int64_t k = 0; k < d; k++) dw[row * d + k] += dy[i * d + k];
    }
}

static void REAL_(add)(void *to, const void *from, int64_t d)
{
    REAL *sum = to;
    const REAL *dy = from;
    for (int64_t k = 0; k < d; k++) sum[k] += dy[k];
}

static void REAL_(add_narrow)(void *to, const void *from, int64_t d)
{
    REAL *sum = to;
    const keel_bf16 *dy = from;
    for (int64_t k = 0; k < d; k++) sum[k] += (REAL)keel_bf16_wide(dy[k]);
}

static void REAL_(weights_tile)(const keel_tile_call *c)
{
    const bool narrow = c->node->held == KEEL_BFLOAT16;
    keel_gather_tile(c, sizeof(REAL), narrow ? REAL_(add_narrow) : REAL_(add));
}
#endif
