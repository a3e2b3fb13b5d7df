/* See rows.h. Each value has one slot for its address and a second one for its copy in real
 * numbers, if it is kept as bytes. What runs is a list of moves, widenings and forwards. */
#include "graph/rows_impl.h"
#include "base/memory.h"
#include "graph/memory_plan.h"
#include "ops/all.h"
#include "ops/warp.h"
#include <string.h>

static keel_rows_one *add(keel_rows *r, keel_rows_run_kind kind, int node)
{
    keel_rows_one *x = &r->run[r->n_run++];
    *x = (keel_rows_one){ .kind = kind, .node = node, .from = -1, .to = -1 };
    return x;
}

static void begins(keel_rows *r, int s, int64_t bytes)
{
    r->slot[s] = (keel_rows_slot){
        .kind = SLOT_MEMORY, .same = s, .bytes = bytes, .first = r->n_run - 1, .last = r->n_run - 1
    };
}

static void shares(keel_rows *r, int s, int from)
{
    r->slot[s] = (keel_rows_slot){ .same = r->slot[from].same };
}

static void reads(keel_rows *r, int s)
{
    r->slot[r->slot[s].same].last = r->n_run - 1;
}

static int64_t bytes_of(const keel_rows *r, keel_value v)
{
    const keel_spec *s = &r->graph->value[v].spec;
    return keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype);
}

/* ---- making ---------------------------------------------------------------------------------- */

static keel_status check(const keel_rows *r)
{
    const keel_graph *g = r->graph;
    if (g->n_carried)
        return keel_fail(KEEL_EUNSUP, "'%s' goes on from row to row: not where rows are read",
                         g->carried[0].name);
    if (g->n_spectral)
        return keel_fail(KEEL_EUNSUP, "a layer changes its weights in training: not where rows are "
                                      "read");
    for (int i = 0; i < g->n_node; i++) {
        const keel_node *n = &g->node[i].node;
        if (n->partial || n->merged || n->sums || n->op->loss)
            return keel_fail(KEEL_EUNSUP,
                             "layer '%s' needs all rows of a step: not where rows are "
                             "read",
                             n->layer);
        if (keel_dtype_is_narrow(n->held))
            return keel_fail(KEEL_EUNSUP,
                             "layer '%s' holds values in %s; where rows are read they "
                             "are float32",
                             n->layer, keel_dtype_name(n->held));
        if (n->n_weight && !r->weight)
            return keel_fail(KEEL_EARG, "layer '%s' has weights", n->layer);
    }
    return KEEL_OK;
}

/* Makes the copy in real numbers of a value that is kept as bytes. */
static void widen(keel_rows *r, keel_value v)
{
    if (!r->bytes[v] || r->slot[keel_rows_wide(r, v)].kind) return;
    keel_rows_one *x = add(r, RUN_WIDEN, -1);
    x->from = v;
    x->to = keel_rows_wide(r, v);
    reads(r, v);
    begins(r, keel_rows_wide(r, v), bytes_of(r, v));
}

static bool moves(const keel_node *n)
{
    return n->op->move && n->n_in == 1 && n->n_out == 1 &&
           n->op->move(&(keel_call){ .node = n }, 1);
}

static bool is_late_cast(const keel_graph *g, const keel_graph_node *n)
{
    return n->node.op == &keel_op_cast && g->value[n->in[0]].spec.dtype == KEEL_UINT8 &&
           n->node.out[0].dtype == g->real;
}

static void plan_node(keel_rows *r, int i)
{
    const keel_graph_node *n = &r->graph->node[i];
    const keel_node *d = &n->node;
    const bool bytes = d->n_in && r->bytes[n->in[0]];
    if (is_late_cast(r->graph, n) || (d->op->view && d->n_in == 1 && bytes)) {
        r->bytes[n->out[0]] = true;
        shares(r, n->out[0], n->in[0]);
        return;
    }
    if (bytes && moves(d)) {
        r->bytes[n->out[0]] = true;
        add(r, RUN_MOVE, i);
        reads(r, n->in[0]);
        begins(r, n->out[0], keel_row_count(&d->out[0]));
        return;
    }
    const bool direct = bytes && d->op->forward_bytes && d->n_in == 1 && d->real == KEEL_FLOAT32;
    for (int k = 0; k < d->n_in && !direct; k++) widen(r, n->in[k]);
    if (d->op->view && d->n_in == 1) {
        shares(r, n->out[0], keel_rows_read_slot(r, n->in[0]));
        return;
    }
    add(r, direct ? RUN_BYTES : RUN_FORWARD, i);
    for (int k = 0; k < d->n_in; k++)
        reads(r, direct ? n->in[k] : keel_rows_read_slot(r, n->in[k]));
    for (int k = 0; k < d->n_out; k++) begins(r, n->out[k], bytes_of(r, n->out[k]));
}

static void plan_look_ups(keel_rows *r)
{
    const keel_graph *g = r->graph;
    for (int i = 0; i < g->n_host; i++) {
        const keel_value out = keel_graph_input_value(g, g->host[i].input);
        add(r, RUN_LOOK_UP, i);
        for (int k = 0; k < g->host[i].n_of; k++)
            reads(r, keel_graph_input_value(g, g->host[i].of[k]));
        begins(r, out, bytes_of(r, out));
    }
}

static void plan_inputs(keel_rows *r)
{
    const keel_graph *g = r->graph;
    for (int v = 0; v < g->n_value; v++) {
        int given = g->value[v].index;
        if (g->value[v].node >= 0) continue;
        for (int i = 0; i < g->n_host; i++) given -= g->host[i].input < g->value[v].index;
        r->slot[v] = (keel_rows_slot){ .kind = SLOT_IN, .same = v, .at = given };
    }
}

/* Integers are given as they are, not as the real numbers that a model makes of its outputs. */
static keel_value uncast(const keel_graph *g, keel_value v)
{
    const int node = g->value[v].node;
    if (node < 0 || g->node[node].node.op != &keel_op_cast) return v;
    const keel_value from = g->node[node].in[0];
    const keel_dtype t = g->value[from].spec.dtype;
    return keel_dtype_flows(t) || t == KEEL_UINT8 ? v : from;
}

/* What only outputs need lies in the caller's memory. */
static void plan_outputs(keel_rows *r, const keel_value *output)
{
    for (int i = 0; i < r->n_output; i++) {
        const keel_value v = uncast(r->graph, output[i]);
        keel_rows_slot *s = &r->slot[r->slot[v].same];
        r->output[i] = v;
        r->spec[i] = r->graph->value[v].spec;
        if (r->bytes[v]) r->spec[i].dtype = KEEL_UINT8;
        s->last = r->n_run;
        if (s->kind != SLOT_MEMORY) continue;
        s->kind = SLOT_OUT;
        s->at = i;
    }
}

static keel_status place(keel_rows *r)
{
    const keel_graph *g = r->graph;
    keel_status s = KEEL_ENOMEM;
    int64_t bound;
    int n = 0;
    keel_buffer *b = keel_calloc((size_t)(r->n_slot + r->n_run + r->n_saved), sizeof *b);
    if (!b) return s;
    for (int i = 0; i < r->n_slot; i++)
        if (r->slot[i].kind == SLOT_MEMORY)
            b[n++] = (keel_buffer){ r->slot[i].bytes, r->slot[i].first, r->slot[i].last, 0 };
    for (int i = 0; i < r->n_run; i++) {
        if (r->run[i].kind > RUN_MOVE) continue;
        const keel_node *d = &g->node[r->run[i].node].node;
        b[n++] = (keel_buffer){ d->scratch, i, i, 0 };
        for (int k = 0; k < d->n_saved; k++)
            b[n++] = (keel_buffer){
                keel_row_count(&d->saved[k]) * (int64_t)keel_dtype_size(d->saved[k].dtype), i, i, 0
            };
    }
    if ((s = keel_memory_plan(b, n, &r->memory, &bound)) < 0) goto out;
    n = 0;
    for (int i = 0; i < r->n_slot; i++)
        if (r->slot[i].kind == SLOT_MEMORY) r->slot[i].offset = b[n++].offset;
    int saved = 0;
    for (int i = 0; i < r->n_run; i++) {
        if (r->run[i].kind > RUN_MOVE) continue;
        r->run[i].scratch = b[n++].offset;
        r->run[i].saved = saved;
        for (int k = 0; k < g->node[r->run[i].node].node.n_saved; k++)
            r->offset[saved++] = b[n++].offset;
    }
out:
    keel_free(b);
    return s;
}

static void measure(keel_rows *r)
{
    const keel_graph *g = r->graph;
    for (int i = 0; i < g->n_node; i++) {
        const keel_node *d = &g->node[i].node;
        if (d->n_in > r->most_in) r->most_in = d->n_in;
        if (d->n_out > r->most_out) r->most_out = d->n_out;
        if (d->n_saved > r->most_saved) r->most_saved = d->n_saved;
        if (d->n_weight > r->most_weight) r->most_weight = d->n_weight;
        r->n_saved += d->n_saved;
    }
    const int pointers = r->n_slot + r->most_in + r->most_out + r->most_saved + r->most_weight;
    r->head = ((int64_t)pointers * (int64_t)sizeof(void *) + 63) / 64 * 64;
}

static keel_status build(keel_rows *r, const keel_value *output)
{
    const keel_graph *g = r->graph;
    KEEL_TRY(check(r));
    r->n_slot = 2 * g->n_value;
    measure(r);
    r->slot = keel_calloc((size_t)r->n_slot + 1, sizeof *r->slot);
    r->bytes = keel_calloc((size_t)g->n_value + 1, sizeof *r->bytes);
    /* each node runs once, and each value is widened at most once */
    r->run = keel_calloc((size_t)(g->n_node + g->n_value + g->n_host) + 1, sizeof *r->run);
    r->offset = keel_calloc((size_t)r->n_saved + 1, sizeof *r->offset);
    r->output = keel_calloc((size_t)r->n_output, sizeof *r->output);
    r->spec = keel_calloc((size_t)r->n_output, sizeof *r->spec);
    if (!r->slot || !r->bytes || !r->run || !r->offset || !r->output || !r->spec)
        return KEEL_ENOMEM;
    plan_inputs(r);
    plan_look_ups(r);
    for (int i = 0; i < g->n_node; i++) plan_node(r, i);
    plan_outputs(r, output);
    return place(r);
}

keel_status keel_rows_create(keel_rows **out, keel_graph *graph, const keel_value *output,
                             int n_output, const void *const *weight)
{
    keel_rows *r = keel_calloc(1, sizeof *r);
    if (!r) {
        keel_graph_destroy(graph);
        return KEEL_ENOMEM;
    }
    r->graph = graph;
    r->weight = weight;
    r->n_output = n_output;
    const keel_status s = build(r, output);
    if (s < 0)
        keel_rows_destroy(r);
    else
        *out = r;
    return s;
}

void keel_rows_destroy(keel_rows *r)
{
    if (!r) return;
    keel_graph_destroy(r->graph);
    keel_free(r->slot);
    keel_free(r->bytes);
    keel_free(r->run);
    keel_free(r->offset);
    keel_free(r->output);
    keel_free(r->spec);
    keel_free(r);
}

const keel_spec *keel_rows_spec(const keel_rows *r, int output)
{
    return &r->spec[output];
}

bool keel_rows_in_place(const keel_rows *r)
{
    if (r->n_output != 1 || r->n_run > 1) return false;
    if (r->n_run == 0) return true;
    if (r->run->kind > RUN_MOVE) return false;
    const keel_graph_node *n = &r->graph->node[r->run->node];
    return n->node.op == &keel_op_warp && n->node.n_in == 1 &&
           keel_rows_root(r, n->in[0])->kind == SLOT_IN &&
           ((const keel_warp_args *)n->node.args)->kind == KEEL_WARP_FLIP;
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_node(const keel_rows *r, const keel_rows_one *x, const keel_step_facts *step,
                     int64_t row, void **at, char *memory)
{
    const keel_graph_node *n = &r->graph->node[x->node];
    const keel_node *d = &n->node;
    const void **in = (const void **)(at + r->n_slot), **weight = in + r->most_in;
    void **out = (void **)(weight + r->most_weight), **saved = out + r->most_out;
    const bool bytes = x->kind != RUN_FORWARD;
    const keel_call c = { .node = d,
                          .step = step,
                          .rows = 1,
                          .row = row,
                          .in = in,
                          .out = out,
                          .saved = saved,
                          .weight = weight,
                          .scratch = memory + x->scratch };
    for (int k = 0; k < d->n_in; k++)
        in[k] = at[bytes ? n->in[k] : keel_rows_read_slot(r, n->in[k])];
    for (int k = 0; k < d->n_out; k++) out[k] = at[n->out[k]];
    for (int k = 0; k < d->n_saved; k++) saved[k] = memory + r->offset[x->saved + k];
    for (int k = 0; k < d->n_weight; k++) weight[k] = r->weight[n->weight[k]];
    if (x->kind == RUN_MOVE)
        d->op->move(&c, 1);
    else if (x->kind == RUN_BYTES)
        d->op->forward_bytes(&c);
    else
        d->op->forward[d->real == KEEL_FLOAT64](&c);
}

static void run_widen(const keel_rows *r, const keel_rows_one *x, void **at)
{
    const keel_value v = x->from;
    const int64_t n = keel_row_count(&r->graph->value[v].spec);
    const uint8_t *from = at[v];
    if (r->graph->real == KEEL_FLOAT64)
        for (int64_t i = 0; i < n; i++) ((double *)at[x->to])[i] = from[i];
    else
        for (int64_t i = 0; i < n; i++) ((float *)at[x->to])[i] = from[i];
}

static keel_status run_look_up(const keel_rows *r, const keel_rows_one *x, void **at,
                               keel_scratch *scratch)
{
    const keel_graph *g = r->graph;
    const keel_graph_host *h = &g->host[x->node];
    const keel_value made = keel_graph_input_value(g, h->input);
    const keel_tensor out = { g->value[made].spec.dtype, g->value[made].spec.shape, at[made] };
    keel_tensor in[KEEL_HOST_INS_MAX];
    for (int k = 0; k < h->n_of; k++) {
        const keel_value v = keel_graph_input_value(g, h->of[k]);
        in[k] = (keel_tensor){ g->value[v].spec.dtype, g->value[v].spec.shape, at[v] };
    }
    keel_scratch *inner = keel_scratch_inner(scratch);
    return inner ? h->op(h->args, in, h->n_of, &out, inner) : KEEL_ENOMEM;
}

static void address(const keel_rows *r, const void *const *in, void *const *out, void **at,
                    char *memory)
{
    for (int s = 0; s < r->n_slot; s++) {
        const keel_rows_slot *x = keel_rows_root(r, s);
        at[s] = x->kind == SLOT_OUT      ? out[x->at]
                : x->kind == SLOT_MEMORY ? memory + x->offset
                                         : NULL;
        /* no op writes to its inputs; a row that is changed in place is the caller's own */
        if (x->kind == SLOT_IN) memcpy(&at[s], &in[x->at], sizeof at[s]);
    }
}

int64_t keel_rows_bytes(const keel_rows *r)
{
    enum { ALIGNED = 64 };
    return r->head + r->memory + ALIGNED;
}

keel_status keel_rows_run(const keel_rows *r, const keel_step_facts *step, int64_t row,
                          const void *const *in, void *const *out, keel_scratch *scratch)
{
    char *head = keel_scratch_reserve(scratch, 0, (size_t)keel_rows_bytes(r));
    if (!head) return KEEL_ENOMEM;
    void **at = (void **)(void *)head;
    char *memory = head + r->head;
    memory += (64 - (uintptr_t)memory % 64) % 64;
    address(r, in, out, at, memory);
    for (int i = 0; i < r->n_run; i++) {
        const keel_rows_one *x = &r->run[i];
        if (x->kind == RUN_WIDEN)
            run_widen(r, x, at);
        else if (x->kind == RUN_LOOK_UP)
            KEEL_TRY(run_look_up(r, x, at, scratch));
        else
            run_node(r, x, step, row, at, memory);
    }
    for (int i = 0; i < r->n_output; i++) {
        const keel_spec *spec = &r->spec[i];
        const void *from = at[r->output[i]];
        const size_t n = (size_t)keel_row_count(spec) * keel_dtype_size(spec->dtype);
        if (from != out[i] && n) memcpy(out[i], from, n);
    }
    return keel_call_status_take();
}
