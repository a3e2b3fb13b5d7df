/* Tells that weight gradients that owners will make can only be finite, from the values they are
 * made of, before they are made. If every input and gradient is at most 2^40, a sum of 2^40 terms
 * stays below 2^120, far from the largest float. Then the step can be decided on first, and an
 * owner updates a tile while the tile's gradient is in the cache. */
#include "base/clones.h"
#include "graph/program.h"
#include <string.h>

enum { EXPONENT_AT_MOST = 127 + 40 };

/* The bits of floats without their sign are ordered like their sizes; infinity and NaN come last.
 */
KEEL_CLONES static bool bounded_f32(const char *x, int64_t n)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i * (int64_t)sizeof bits, sizeof bits);
        bits &= 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    return most < (uint32_t)EXPONENT_AT_MOST << 23;
}

KEEL_CLONES static bool bounded_bf16(const char *x, int64_t n)
{
    uint16_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, x + i * (int64_t)sizeof bits, sizeof bits);
        bits &= 0x7fff;
        most = bits > most ? bits : most;
    }
    return most < (uint16_t)EXPONENT_AT_MOST << 7;
}

static bool is_bounded(const void *x, const keel_spec *row, int64_t rows)
{
    const int64_t n = rows * keel_row_count(row);
    if (!keel_dtype_flows(row->dtype)) return true; /* numbers of rows of a table */
    if (row->dtype == KEEL_FLOAT32) return bounded_f32(x, n);
    return row->dtype == KEEL_BFLOAT16 && bounded_bf16(x, n);
}

bool keel_program_bounded(const keel_program *p, const keel_bound *b, int worker)
{
    for (int v = 0; v < p->store->n_weight; v++) {
        if (p->tiled[v].node < 0 || p->tiled[v].weight > 0) continue;
        const keel_graph_node *n = &p->graph->node[p->tiled[v].node];
        for (int i = 0; i < b->n_busy; i++) {
            const keel_piece *piece = &b->piece[i];
            if (piece->worker != worker) continue;
            if (!is_bounded(keel_program_rows(p, &p->value[n->in[0]], piece), &n->node.in[0],
                            piece->rows) ||
                !is_bounded(keel_program_rows(p, &p->grad[n->out[0]], piece), &n->node.out[0],
                            piece->rows))
                return false;
        }
    }
    return true;
}
