/* The programs of a loss of all rows: the caller's step is traced and compiled for each number of
 * rows that steps have. */
#include "base/memory.h"
#include "base/round.h"
#include "ops/all.h"
#include "train/function.h"
#include "train/whole_loss.h"
#include <string.h>

void keel_whole_made_free(keel_whole_made *m, int n_input)
{
    keel_parts_destroy(m->parts);
    keel_scored_free(&m->scored);
    keel_trace_free(&m->trace);
    keel_store_destroy(m->store);
    keel_free(m->models.model);
    for (int i = 0; m->given && i < n_input; i++) keel_free(m->given[i]);
    keel_free(m->given);
    keel_free(m->turn);
    keel_free(m->rounds);
    keel_free(m->grad);
    keel_free(m->input);
    *m = (keel_whole_made){ 0 };
}

/* The inputs for so many rows, and memory for those that records bring. */
static keel_status make_inputs(const keel_whole *w, keel_whole_made *m)
{
    const size_t n = (size_t)w->o.n_input;
    m->input = keel_calloc(n, sizeof *m->input);
    m->given = keel_calloc(n, sizeof *m->given);
    m->rounds = keel_calloc(n, sizeof *m->rounds);
    m->grad = keel_calloc(n, sizeof *m->grad);
    if (!m->input || !m->given || !m->rounds || !m->grad) return KEEL_ENOMEM;
    for (int i = 0; i < w->o.n_input; i++) {
        const keel_whole_input *of = &w->input[i];
        keel_shape *shape = &m->input[i].shape;
        m->input[i] = w->field[i];
        *shape = (keel_shape){ .rank = of->spec.shape.rank + 1, .dim = { m->rows } };
        for (int k = 1; k < shape->rank; k++) shape->dim[k] = of->spec.shape.dim[k - 1];
        KEEL_TRY(keel_shape_check(shape, keel_dtype_size(of->spec.dtype)));
        if (of->first < 0) continue;
        m->given[i] =
            keel_aligned_calloc((size_t)keel_shape_count(shape), keel_dtype_size(of->spec.dtype));
        if (!m->given[i]) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

/* The scalar that the step gives back. */
static keel_status find_loss(keel_trace *t)
{
    t->gives = -1;
    for (int i = 0; i < t->n_return; i++)
        if (!strcmp(t->ret[i].name, "loss")) t->gives = t->ret[i].scalar;
    if (t->gives >= 0) return KEEL_OK;
    return keel_fail(KEEL_EARG, "the step must return its loss: keel_trace_return_scalar(t, "
                                "\"loss\", ...)");
}

/* Finds the whole numbers that become real ones on the way to the loss. */
static keel_status find_rounded(keel_whole_made *m)
{
    const keel_graph *g = m->trace.g;
    bool *live = keel_calloc((size_t)g->n_value, sizeof *live);
    if (!live) return KEEL_ENOMEM;
    for (int i = g->n_node - 1; i >= 0; i--) {
        const keel_graph_node *n = &g->node[i];
        bool is = n->node.op->loss;
        for (int k = 0; k < n->node.n_out; k++) is = is || live[n->out[k]];
        for (int k = 0; is && k < n->node.n_in; k++) live[n->in[k]] = true;
        if (!is || n->node.op != &keel_op_cast) continue;
        const keel_graph_value *from = &g->value[n->in[0]];
        if (from->spec.dtype == KEEL_INT32 || from->spec.dtype == KEEL_INT64)
            m->rounds[m->scored.field[from->index]] = true;
    }
    keel_free(live);
    return KEEL_OK;
}

static keel_status compile(const keel_whole *w, keel_whole_made *m, bool backward)
{
    keel_value *outputs = NULL;
    int n_output = 0;
    keel_trace *t = &m->trace;
    *t = (keel_trace){ .options = &w->o,
                       .input = m->input,
                       .models = &m->models,
                       .rows = 1,
                       .backward = backward,
                       .within = true,
                       .s = &m->scored };
    keel_status s = keel_trace_run(t);
    if (s >= 0) s = find_loss(t);
    if (s >= 0) s = keel_trace_finish(t, &outputs, &n_output);
    if (s >= 0 && m->scored.n_activity)
        s = keel_fail(KEEL_EUNSUP, "a layer in it adds a loss of its own");
    if (s >= 0) s = find_rounded(m);
    if (s >= 0) s = keel_store_create(&m->store, w->o.dtype, NULL, 0, NULL, 0);
    if (s >= 0) {
        const keel_program_options options = { .real = w->o.dtype,
                                               .max_rows = 1,
                                               .micro_batch = -1 };
        m->contents = keel_function_contents_of(t->g);
        s = keel_program_create(&m->scored.program, t->g, outputs, n_output, m->store, &w->lanes,
                                &options);
        t->g = NULL;
    }
    if (s >= 0) s = keel_program_bind(m->scored.program, 1, &m->bound);
    keel_free(outputs);
    return s;
}

/* What the workers share: the rows, the phases of the program, and what it gives. If the program is
 * one turn, all is. */
static keel_status make_phases(const keel_whole *w, keel_whole_made *m)
{
    enum { ROWS = 64 };
    int n;
    KEEL_TRY(keel_parts_create(&m->parts, m->scored.program, m->bound, w->workers));
    const int *turn = keel_parts_turns(m->parts, &n);
    const bool alone = n == 1 && turn[0] == 1;
    if (!(m->turn = keel_calloc((size_t)n + 2, sizeof *m->turn))) return KEEL_ENOMEM;
    m->turn[0] = alone ? 1 : (int)keel_div_up(m->rows, ROWS);
    m->n_phase = 1;
    for (int i = 0; i < n && !alone; i++) m->turn[m->n_phase++] = turn[i];
    if (!alone) m->turn[m->n_phase++] = 1;
    return KEEL_OK;
}

/* A place for another: the one that was not used for longest is dropped. */
static int make_room(keel_whole *w)
{
    int oldest = 0;
    if (w->n_made < KEEL_WHOLE_MADE) return w->n_made++;
    for (int i = 1; i < w->n_made; i++)
        if (w->made[i].used < w->made[oldest].used) oldest = i;
    keel_whole_made_free(&w->made[oldest], w->o.n_input);
    return oldest;
}

keel_status keel_whole_make(keel_whole *w, int64_t rows, bool backward)
{
    for (int i = 0; i < w->n_made; i++)
        if (w->made[i].rows == rows) {
            w->made[w->now = i].used = ++w->clock;
            return KEEL_OK;
        }
    const int at = make_room(w);
    keel_whole_made *m = &w->made[at];
    *m = (keel_whole_made){ .rows = rows, .used = ++w->clock };
    keel_status s = make_inputs(w, m);
    if (s >= 0) s = compile(w, m, backward);
    if (s >= 0) s = make_phases(w, m);
    if (s >= 0) {
        w->now = at;
        return KEEL_OK;
    }
    keel_whole_made_free(m, w->o.n_input); /* of no rows, so it is never found */
    return s == KEEL_ENOMEM ? s : keel_fail_within(s, "a loss of all rows");
}
