/* What rows end with in stateful layers (graph.h, keel_graph_carried) goes to all processes, since
 * the next step may be cut otherwise. It is sent before the commit point: a process that is lost
 * leaves the others with a whole step. */
#include "graph/across.h"
#include "base/memory.h"
#include <string.h>

/* One row of state i. */
static int64_t row_bytes(const keel_program *p, int i)
{
    const keel_spec *s = keel_graph_spec(p->graph, p->graph->carried[i].end);
    return keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype);
}

static int first_output(const keel_program *p)
{
    return p->n_output - p->graph->n_carried;
}

keel_status keel_across_make_carried(keel_across *x, const keel_program *p)
{
    for (int i = 0; i < p->graph->n_carried; i++) x->carried_bytes += row_bytes(p, i);
    if (p->options.dry || x->carried_bytes == 0) return KEEL_OK;
    x->carried = keel_calloc((size_t)p->options.max_rows, (size_t)x->carried_bytes);
    return x->carried ? KEEL_OK : KEEL_ENOMEM;
}

/* Rows of a process lie together: all rows of its first state, then those of the next. */
static char *rows_of(const keel_program *p, int i, int64_t first, int64_t rows)
{
    char *at = p->across->carried + first * p->across->carried_bytes;
    for (int k = 0; k < i; k++) at += rows * row_bytes(p, k);
    return at;
}

static void pack(const keel_program *p, const keel_bound *b, int64_t first, int64_t rows)
{
    for (int i = 0; i < p->graph->n_carried; i++) {
        const int64_t bytes = row_bytes(p, i);
        char *to = rows_of(p, i, first, rows);
        for (int k = 0; k < b->n_busy; k++) {
            const keel_piece *piece = &b->piece[k];
            memcpy(to + (piece->row - first) * bytes,
                   keel_program_output(p, first_output(p) + i, piece),
                   (size_t)(piece->rows * bytes));
        }
    }
}

keel_status keel_across_carry(const keel_program *p, const keel_bound *b)
{
    keel_across *x = p->across;
    if (!x->carried) return KEEL_OK;
    for (int q = 0; q < x->lanes->n_process; q++) {
        int64_t first, end;
        keel_lanes_rows(x->lanes, b->rows, q, &first, &end);
        x->at[q] = (size_t)(first * x->carried_bytes);
        x->bytes[q] = (size_t)((end - first) * x->carried_bytes);
        if (q == x->lanes->process) pack(p, b, first, end - first);
    }
    return keel_comm_all_gather(x->comm, x->carried, x->at, x->bytes);
}

void keel_across_carried(const keel_program *p, const keel_bound *b, int i, void *out)
{
    const int64_t bytes = row_bytes(p, i);
    for (int q = 0; q < p->across->lanes->n_process; q++) {
        int64_t first, end;
        keel_lanes_rows(p->across->lanes, b->rows, q, &first, &end);
        memcpy((char *)out + first * bytes, rows_of(p, i, first, end - first),
               (size_t)((end - first) * bytes));
    }
}
