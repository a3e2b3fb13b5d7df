/* See widen.h. */
#include "graph/widen.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"

enum { ALIGN = 64 };

void keel_widened_destroy(keel_widened *w)
{
    if (!w) return;
    keel_free((void *)w->node.in);
    keel_free(w->in_at);
    keel_free(w->grad_at);
    keel_free(w);
}

keel_status keel_widened_create(keel_widened **out, const keel_node *n, keel_pass pass)
{
    const size_t n_in = (size_t)n->n_in;
    const bool forward = pass == KEEL_FORWARD || pass == KEEL_PARTIAL;
    const bool from_record =
        pass == KEEL_WEIGHTS && n->op->weights_from_merged && n->partial_backward > 0;
    const unsigned reads = forward                ? KEEL_READS_IN
                           : from_record          ? 0
                           : pass == KEEL_WEIGHTS ? n->op->weights_reads
                                                  : n->op->backward_reads;
    keel_widened *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    w->narrow = n;
    w->node = *n;
    w->in = reads & (KEEL_READS_IN | KEEL_READS_FIRST);
    w->out = reads & KEEL_READS_OUT;
    w->out_grad = !forward && !from_record;
    w->makes_out = pass == KEEL_FORWARD;
    w->makes_grad = pass == KEEL_BACKWARD;
    keel_spec *in = keel_calloc(n_in, sizeof *in);
    w->node.in = in;
    w->in_at = keel_calloc(n_in, sizeof *w->in_at);
    w->grad_at = keel_calloc(n_in, sizeof *w->grad_at);
    if (!in || !w->in_at || !w->grad_at) {
        keel_widened_destroy(w);
        return KEEL_ENOMEM;
    }
    for (size_t i = 0; i < n_in; i++) {
        in[i] = n->in[i];
        if (in[i].dtype == KEEL_BFLOAT16) in[i].dtype = KEEL_FLOAT32;
    }
    w->node.held = w->node.out.dtype = KEEL_FLOAT32;
    *out = w;
    return KEEL_OK;
}

static int64_t floats(const keel_spec *s, int64_t rows)
{
    const int64_t bytes = rows * keel_row_count(s) * (int64_t)sizeof(float);
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

int64_t keel_widened_bytes(const keel_widened *w, int64_t rows)
{
    int64_t bytes = (w->scratch + ALIGN - 1) / ALIGN * ALIGN;
    for (int i = 0; i < w->narrow->n_in; i++) {
        if (w->narrow->in[i].dtype != KEEL_BFLOAT16) continue;
        if (w->in) bytes += floats(&w->narrow->in[i], rows);
        if (w->makes_grad) bytes += floats(&w->narrow->in[i], rows);
    }
    if (w->out || w->makes_out) bytes += floats(&w->narrow->out, rows);
    if (w->out_grad) bytes += floats(&w->narrow->out, rows);
    return bytes;
}

/* The next floats of scratch, filled from `from` where that is not NULL. */
static float *take(char **at, const keel_spec *s, int64_t rows, const void *from)
{
    float *f = (float *)(void *)*at;
    *at += floats(s, rows);
    if (from) keel_bf16_widen(f, from, rows * keel_row_count(s));
    return f;
}

void keel_widened_run(const keel_call *c)
{
    keel_widened *w = c->plan;
    const keel_node *n = w->narrow;
    char *at = (char *)c->scratch + (w->scratch + ALIGN - 1) / ALIGN * ALIGN;
    keel_call wide = *c;
    wide.node = &w->node;
    wide.plan = w->plan;
    wide.in = w->in_at;
    wide.in_grad = w->grad_at;
    for (int i = 0; i < n->n_in; i++) {
        const bool narrow = n->in[i].dtype == KEEL_BFLOAT16;
        w->in_at[i] = c->in[i];
        w->grad_at[i] = c->in_grad[i];
        if (narrow && w->in) w->in_at[i] = take(&at, &n->in[i], c->rows, c->in[i]);
        if (narrow && w->makes_grad && c->in_grad[i])
            w->grad_at[i] = take(&at, &n->in[i], c->rows, c->in_adds[i] ? c->in_grad[i] : NULL);
    }
    if (w->out || w->makes_out) wide.out = take(&at, &n->out, c->rows, w->out ? c->out : NULL);
    if (w->out_grad && c->out_grad) wide.out_grad = take(&at, &n->out, c->rows, c->out_grad);
    w->run(&wide);
    if (w->makes_out) keel_bf16_narrow(c->out, wide.out, c->rows * keel_row_count(&n->out));
    for (int i = 0; w->makes_grad && i < n->n_in; i++)
        if (n->in[i].dtype == KEEL_BFLOAT16 && c->in_grad[i])
            keel_bf16_narrow(c->in_grad[i], w->grad_at[i], c->rows * keel_row_count(&n->in[i]));
}
