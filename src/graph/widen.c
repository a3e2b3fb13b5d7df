/* See widen.h. */
#include "graph/widen.h"
#include "base/memory.h"
#include "base/round.h"
#include "ops/reads.h"
#include "tensor/narrow.h"

enum { ALIGN = 64 };

void keel_widened_destroy(keel_widened *w)
{
    if (!w) return;
    keel_free(w->in_spec);
    keel_free(w->node.out);
    keel_free(w->in_at);
    keel_free(w->grad_at);
    keel_free(w->out_at);
    keel_free(w->out_grad_at);
    keel_free(w);
}

static keel_spec widened(const keel_spec *s)
{
    const keel_dtype dtype = keel_dtype_is_narrow(s->dtype) ? KEEL_FLOAT32 : s->dtype;
    return (keel_spec){ .dtype = dtype, .shape = s->shape };
}

keel_status keel_widened_create(keel_widened **out, const keel_node *n, keel_pass pass)
{
    const size_t n_in = (size_t)n->n_in;
    const bool forward = pass == KEEL_FORWARD || pass == KEEL_PARTIAL;
    const bool from_record = pass == KEEL_WEIGHTS && keel_weights_from_merged(n);
    const unsigned reads = keel_pass_reads(n, pass);
    keel_widened *w = keel_calloc(1, sizeof *w);
    if (!w) return KEEL_ENOMEM;
    w->narrow = n;
    w->node = *n;
    w->node.out = NULL;
    w->n_in = reads & KEEL_READS_IN ? n->n_in : reads & KEEL_READS_FIRST ? 1 : 0;
    w->n_out = reads & KEEL_READS_OUT ? n->n_out : reads & KEEL_READS_FIRST_OUT ? 1 : 0;
    w->out_grad = !forward && !from_record;
    w->makes_out = pass == KEEL_FORWARD;
    w->makes_grad = pass == KEEL_BACKWARD;
    w->in_spec = keel_calloc(n_in, sizeof *w->in_spec);
    w->node.in = w->in_spec;
    w->in_at = keel_calloc(n_in, sizeof *w->in_at);
    w->grad_at = keel_calloc(n_in, sizeof *w->grad_at);
    w->node.out = keel_calloc((size_t)n->n_out, sizeof *w->node.out);
    w->out_at = keel_calloc((size_t)n->n_out, sizeof *w->out_at);
    w->out_grad_at = keel_calloc((size_t)n->n_out, sizeof *w->out_grad_at);
    if (!w->in_spec || !w->in_at || !w->grad_at || !w->node.out || !w->out_at || !w->out_grad_at) {
        keel_widened_destroy(w);
        return KEEL_ENOMEM;
    }
    for (size_t i = 0; i < n_in; i++) w->in_spec[i] = widened(&n->in[i]);
    for (int i = 0; i < n->n_out; i++) w->node.out[i] = widened(&n->out[i]);
    w->node.held = KEEL_FLOAT32;
    w->node.rounded = n->held;
    *out = w;
    return KEEL_OK;
}

static int64_t floats(const keel_spec *s, int64_t rows)
{
    const int64_t bytes = rows * keel_row_count(s) * (int64_t)sizeof(float);
    return keel_round_up(bytes, ALIGN);
}

int64_t keel_widened_bytes(const keel_widened *w, int64_t rows)
{
    int64_t bytes = keel_round_up(w->scratch, ALIGN);
    for (int i = 0; i < w->narrow->n_in; i++) {
        if (!keel_dtype_is_narrow(w->narrow->in[i].dtype)) continue;
        if (i < w->n_in) bytes += floats(&w->narrow->in[i], rows);
        if (w->makes_grad) bytes += floats(&w->narrow->in[i], rows);
    }
    for (int i = 0; i < w->narrow->n_out; i++) {
        if (!keel_dtype_is_narrow(w->narrow->out[i].dtype)) continue;
        if (i < w->n_out || w->makes_out) bytes += floats(&w->narrow->out[i], rows);
        if (w->out_grad) bytes += floats(&w->narrow->out[i], rows);
    }
    return bytes;
}

/* The next floats of scratch, filled from `from` unless that is NULL. */
static float *take(char **at, const keel_spec *s, int64_t rows, const void *from)
{
    float *f = (float *)(void *)*at;
    *at += floats(s, rows);
    if (from) keel_narrow_read(f, s->dtype, from, rows * keel_row_count(s));
    return f;
}

/* Copies what the pass reads, and reserves room for what it writes. */
static void widen_in(const keel_widened *w, const keel_call *c, char **at, int i)
{
    const keel_spec *spec = &w->narrow->in[i];
    const bool narrow = keel_dtype_is_narrow(spec->dtype);
    w->in_at[i] = c->in[i];
    w->grad_at[i] = c->in_grad[i];
    if (narrow && i < w->n_in) w->in_at[i] = take(at, spec, c->rows, c->in[i]);
    if (narrow && w->makes_grad && c->in_grad[i])
        w->grad_at[i] = take(at, spec, c->rows, c->in_adds[i] ? c->in_grad[i] : NULL);
}

static void widen_out(const keel_widened *w, const keel_call *c, char **at, int i)
{
    const keel_spec *spec = &w->narrow->out[i];
    const bool narrow = keel_dtype_is_narrow(spec->dtype);
    w->out_at[i] = c->out[i];
    w->out_grad_at[i] = c->out_grad[i];
    if (narrow && (i < w->n_out || w->makes_out) && c->out[i])
        w->out_at[i] = take(at, spec, c->rows, i < w->n_out ? c->out[i] : NULL);
    if (narrow && w->out_grad && c->out_grad[i])
        w->out_grad_at[i] = take(at, spec, c->rows, c->out_grad[i]);
}

static void narrow(void *to, const void *from, const keel_spec *spec, int64_t rows)
{
    if (to && keel_dtype_is_narrow(spec->dtype))
        keel_narrow_write(to, spec->dtype, from, rows * keel_row_count(spec));
}

void keel_widened_run(const keel_call *c)
{
    keel_widened *w = c->plan;
    const keel_node *n = w->narrow;
    char *at = (char *)c->scratch + keel_round_up(w->scratch, ALIGN);
    keel_call wide = *c;
    wide.node = &w->node;
    wide.plan = w->plan;
    wide.in = w->in_at;
    wide.in_grad = w->grad_at;
    wide.out = w->out_at;
    wide.out_grad = w->out_grad_at;
    for (int i = 0; i < n->n_in; i++) widen_in(w, c, &at, i);
    for (int i = 0; i < n->n_out; i++) widen_out(w, c, &at, i);
    w->run(&wide);
    for (int i = 0; w->makes_out && i < n->n_out; i++)
        narrow(c->out[i], w->out_at[i], &n->out[i], c->rows);
    for (int i = 0; w->makes_grad && i < n->n_in; i++)
        narrow(c->in_grad[i], w->grad_at[i], &n->in[i], c->rows);
}
