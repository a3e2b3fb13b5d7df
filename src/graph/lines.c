/* See lines.h. */
#include "graph/lines.h"
#include "base/clones.h"
#include "graph/rows_impl.h"
#include "ops/mirror.h"
#include <string.h>

enum {
    SOME = 8192, /* numbers of a block; as float32 they fill the L1 cache */
    WEIGHTS_MAX = 4
};

/* ---- which programs -------------------------------------------------------------------------- */

static const keel_graph_node *node_of(const keel_rows *r, const keel_rows_one *x)
{
    return &r->graph->node[x->node];
}

/* Does the op read what was made last, and can it run on lines? */
static bool goes_on(const keel_rows *r, const keel_rows_one *x, int last)
{
    if (x->kind == RUN_LOOK_UP) return false;
    if (x->kind == RUN_WIDEN) return r->slot[x->from].same == last;
    const keel_graph_node *n = node_of(r, x);
    const keel_node *d = &n->node;
    if (d->n_in != 1 || d->n_out != 1 || d->n_saved || d->n_weight > WEIGHTS_MAX) return false;
    if (d->in[0].shape.rank != 3) return false;
    const int in = x->kind == RUN_FORWARD ? keel_rows_read_slot(r, n->in[0]) : n->in[0];
    if (r->slot[in].same != last) return false;
    return keel_warp_is_view(d) || (d->op->by_pixels && d->op->by_pixels(d));
}

int keel_rows_lines(const keel_rows *r)
{
    int last = -1;
    for (int s = 0; s < r->n_slot; s++)
        if (r->slot[s].kind == SLOT_IN) {
            if (last >= 0) return 0; /* two inputs */
            last = s;
        }
    if (last < 0 || r->n_output != 1 || r->n_run > KEEL_LINES_OPS_MAX) return 0;
    for (int i = 0; i < r->n_run; i++) {
        const keel_rows_one *x = &r->run[i];
        if (!goes_on(r, x, last)) return 0;
        last = x->kind == RUN_WIDEN ? x->to : node_of(r, x)->out[0];
    }
    return r->slot[r->output[0]].same == last ? r->n_run : 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

void keel_lines_begin(keel_lines *l, const keel_spec *image)
{
    l->image = image->shape;
    l->from = l->to = image->dtype;
    l->view = (keel_view){ .height = image->shape.dim[0], .width = image->shape.dim[1] };
    l->n_op = l->n_view = 0;
    l->viewer = -1;
    l->scratch = 0;
}

static keel_lines_op *add(keel_lines *l, int program)
{
    keel_lines_op *o = &l->op[l->n_op++];
    *o = (keel_lines_op){ .program = program, .scratch = l->scratch };
    return o;
}

/* The node of a block is the op's, but for the number of lines. */
static void add_op(keel_lines *l, const keel_rows *r, const keel_rows_one *x,
                   const keel_step_facts *step, int program)
{
    const keel_node *d = &node_of(r, x)->node;
    if (keel_warp_is_view(d)) {
        const keel_call c = { .node = d, .step = step, .rows = 1 };
        keel_warp_show(&c, &l->view);
        if (l->n_view++ == 0) l->viewer = program;
        return;
    }
    keel_lines_op *o = add(l, program);
    o->node = *d;
    o->in = d->in[0];
    o->out = d->out[0];
    o->rows = r;
    o->step = step;
    o->graph_node = x->node;
    o->bytes = x->kind == RUN_BYTES;
    l->to = d->out[0].dtype;
    l->scratch += (d->scratch + 63) / 64 * 64;
}

void keel_lines_widen(keel_lines *l, int program)
{
    add(l, program);
    l->to = KEEL_FLOAT32;
}

void keel_lines_add(keel_lines *l, const keel_rows *r, const keel_step_facts *step, int program)
{
    for (int i = 0; i < r->n_run; i++) {
        const keel_rows_one *x = &r->run[i];
        if (x->kind != RUN_WIDEN) {
            add_op(l, r, x, step, program);
            continue;
        }
        add(l, program);
        l->to = r->graph->real;
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static int64_t lines_of_block(int64_t numbers)
{
    return numbers < SOME ? SOME / numbers : 1;
}

int64_t keel_lines_block_bytes(const keel_spec *image)
{
    const int64_t line = image->shape.dim[1] * image->shape.dim[2];
    if (line < 1) return 0;
    return lines_of_block(line) * line * (int64_t)keel_dtype_size(image->dtype);
}

int64_t keel_lines_bytes(const keel_lines *l)
{
    enum { ALIGNED = 64 };
    const keel_spec seen = { l->from, KEEL_SHAPE(l->view.height, l->view.width, l->image.dim[2]) };
    return l->scratch + keel_lines_block_bytes(&seen) + ALIGNED;
}

/* Lines `first` to `first + n` of what is seen: where they lie, or copied to `to`. */
static const void *see(const keel_lines *l, const char *in, int64_t first, int64_t n, char *to)
{
    const keel_view *v = &l->view;
    const size_t pixel = (size_t)l->image.dim[2] * keel_dtype_size(l->from);
    const size_t stride = (size_t)l->image.dim[1] * pixel, line = (size_t)v->width * pixel;
    in += (size_t)v->left * pixel;
    if (!v->mirrored && !v->upside_down && line == stride)
        return in + (size_t)(v->top + first) * stride;
    for (int64_t i = first; i < first + n; i++, to += line) {
        const int64_t at = v->top + (v->upside_down ? v->height - 1 - i : i);
        const char *from = in + (size_t)at * stride;
        if (v->mirrored)
            keel_mirror_line(to, from, v->width, pixel);
        else
            memcpy(to, from, line);
    }
    return to - (size_t)n * line;
}

KEEL_CLONES static void widen_f32(float *restrict y, const uint8_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
}

KEEL_CLONES static void widen_f64(double *restrict y, const uint8_t *restrict x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = x[i];
}

/* What a program compiled for a row and one for a block of it have in common is the program. */
static void run_op(const keel_lines_op *o, const void *x, void *y, const keel_shape *block,
                   char *memory, bool again)
{
    const keel_graph_node *n = &o->rows->graph->node[o->graph_node];
    const void *weight[WEIGHTS_MAX];
    keel_spec in = o->in, out = o->out;
    keel_node d = o->node;
    in.shape = out.shape = *block;
    d.in = &in;
    d.out = &out;
    for (int k = 0; k < d.n_weight; k++) weight[k] = o->rows->weight[n->weight[k]];
    const keel_call c = { .node = &d,
                          .step = o->step,
                          .rows = 1,
                          .in = &x,
                          .out = &y,
                          .weight = weight,
                          .scratch = memory + o->scratch,
                          .scratch_ready = again };
    if (o->bytes)
        d.op->forward_bytes(&c);
    else
        d.op->forward[d.real == KEEL_FLOAT64](&c);
}

static void run_block(const keel_lines *l, const void *x, void *y, const keel_shape *block,
                      char *memory, bool again, void (*works)(void *context, int program),
                      void *context)
{
    const int64_t count = keel_shape_count(block);
    for (int i = 0; i < l->n_op; i++, x = y) {
        const keel_lines_op *o = &l->op[i];
        if (works) works(context, o->program);
        if (o->node.op)
            run_op(o, x, y, block, memory, again);
        else if (l->to == KEEL_FLOAT64)
            widen_f64(y, x, count);
        else
            widen_f32(y, x, count);
    }
    if (x != y) memcpy(y, x, (size_t)count * keel_dtype_size(l->to));
}

void keel_lines_run(const keel_lines *l, const void *in, void *out, void *memory,
                    void (*works)(void *context, int program), void *context)
{
    const keel_view *v = &l->view;
    const int64_t line = v->width * l->image.dim[2], few = line > 0 ? lines_of_block(line) : 1;
    const size_t size = keel_dtype_size(l->to);
    char *scratch = memory;
    scratch += (64 - (uintptr_t)scratch % 64) % 64;
    for (int64_t first = 0; first < v->height; first += few) {
        const int64_t n = v->height - first < few ? v->height - first : few;
        const keel_shape block = KEEL_SHAPE(n, v->width, l->image.dim[2]);
        char *y = (char *)out + (size_t)(first * line) * size;
        if (works && l->n_view) works(context, l->viewer);
        const void *x = see(l, in, first, n, l->n_op ? scratch + l->scratch : y);
        run_block(l, x, y, &block, scratch, first > 0, works, context);
    }
}
