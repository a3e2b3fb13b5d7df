/* See profile.h. The ops give the flops; bytes follow from shapes: each value that a call needs is
 * counted once. */
#include "train/profile.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/cpu/peak.h"
#include "io/file.h"
#include <stdio.h>
#include <string.h>

static double row_bytes(const keel_spec *s)
{
    return (double)(keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype));
}

/* Bytes of forward and of backward for a step of `rows` rows. */
static void add_bytes(const keel_node *n, double rows, double *forward, double *backward)
{
    double in = 0, weights = 0;
    for (int k = 0; k < n->n_in; k++) in += row_bytes(&n->in[k]);
    for (int k = 0; k < n->n_weight; k++) weights += row_bytes(&n->weight[k]);
    double out = 0;
    for (int k = 0; k < n->n_out; k++) out += row_bytes(&n->out[k]);
    *forward += rows * (in + out) + weights;
    *backward += rows * (2 * in + 2 * out) + 2 * weights;
}

keel_status keel_profile_begin(keel_profile_work *w, const keel_program *p)
{
    const keel_graph *g = p->graph;
    *w = (keel_profile_work){ .n = g->n_node };
    if (!(w->node = keel_calloc((size_t)g->n_node, sizeof *w->node))) return KEEL_ENOMEM;
    for (int i = 0; i < g->n_node; i++) {
        w->node[i].op = g->node[i].node.op;
        snprintf(w->node[i].layer, sizeof w->node[i].layer, "%s", g->node[i].node.layer);
    }
    return KEEL_OK;
}

void keel_profile_work_free(keel_profile_work *w)
{
    keel_free(w->node);
    *w = (keel_profile_work){ 0 };
}

bool keel_profile_takes(const keel_profile_work *w, const keel_program *p)
{
    const keel_graph *g = p->graph;
    bool same = w->n == g->n_node;
    for (int i = 0; same && i < w->n; i++)
        same = w->node[i].op == g->node[i].node.op &&
               !strncmp(w->node[i].layer, g->node[i].node.layer, sizeof w->node[i].layer - 1);
    return same;
}

void keel_profile_add(keel_profile_work *w, const keel_program *p, int64_t rows)
{
    for (int i = 0; i < w->n; i++) {
        const keel_node *n = &p->graph->node[i].node;
        struct keel_profile_node *to = &w->node[i];
        const double flops = n->op->flops ? n->op->flops(n) * (double)rows : 0;
        to->flops += flops;
        to->backward_flops +=
            n->op->backward_flops ? n->op->backward_flops(n) * (double)rows : flops;
        add_bytes(n, (double)rows, &to->forward_bytes, &to->backward_bytes);
    }
    w->steps++;
}

/* The peak rate for the values of a node: products of bfloat16 have their own, if the processor has
 * them. */
static double peak_of(const keel_profile *p, const keel_node *n)
{
    const bool bf16 = n->n_in > 0 && n->in[0].dtype == KEEL_BFLOAT16 && p->peak_bf16_flops > 0;
    return bf16 ? p->peak_bf16_flops : p->peak_flops;
}

static void kernels_of(const keel_program *p, int node, char forward[40], char backward[40],
                       char weights[40])
{
    _Static_assert(KEEL_KERNEL_NAME_MAX == 40, "the texts of keel_kernel_row and profile rows");
    keel_program_kernel(p, node, KEEL_FORWARD, forward);
    keel_program_kernel(p, node, KEEL_BACKWARD, backward);
    keel_program_kernel(p, node, KEEL_WEIGHTS, weights);
}

void keel_kernel_row_fill(keel_kernel_row *r, const keel_program *p, int node)
{
    const keel_node *n = &p->graph->node[node].node;
    snprintf(r->layer, sizeof r->layer, "%s", n->layer);
    snprintf(r->op, sizeof r->op, "%s", n->op->name);
    kernels_of(p, node, r->forward, r->backward, r->weights);
}

static void fill_row(keel_profile_row *r, const keel_profile_work *work, const keel_timing *timing,
                     int node)
{
    int64_t ns[KEEL_PASS_COUNT] = { 0 };
    const struct keel_profile_node *n = &work->node[node];
    memcpy(r->layer, n->layer, sizeof r->layer);
    snprintf(r->op, sizeof r->op, "%s", n->op->name);
    for (int w = 0; w < timing->n_worker; w++)
        for (int p = 0; p < KEEL_PASS_COUNT; p++)
            ns[p] += timing->workspace[w].call_ns[(int64_t)node * KEEL_PASS_COUNT + p];
    r->forward_seconds = 1e-9 * (double)(ns[KEEL_FORWARD] + ns[KEEL_PARTIAL]);
    r->backward_seconds =
        1e-9 * (double)(ns[KEEL_BACKWARD] + ns[KEEL_WEIGHTS] + ns[KEEL_PARTIAL_BACKWARD]);
    r->forward_flops = ns[KEEL_FORWARD] ? n->flops : 0;
    r->backward_flops =
        (ns[KEEL_BACKWARD] ? n->backward_flops : 0) + (ns[KEEL_WEIGHTS] ? n->flops : 0);
    r->forward_bytes = n->forward_bytes;
    r->backward_bytes = n->backward_bytes;
}

keel_status keel_profile_make(keel_profile **out, const keel_trainer *t, const keel_timing *timing,
                              const keel_profile_work *work, double step_seconds)
{
    const keel_graph *g = t->train.program->graph;
    const bool same = keel_profile_takes(work, t->train.program);
    const int n = timing->n_worker;
    keel_profile *p = keel_calloc(1, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    double **const by_worker[] = { &p->merge_seconds, &p->wait_seconds, &p->reduce_seconds,
                                   &p->update_seconds, &p->read_seconds };
    p->steps = work->steps;
    p->step_seconds = step_seconds;
    p->workers = n;
    p->call_seconds = keel_calloc((size_t)n, sizeof(double));
    p->row = keel_calloc((size_t)work->n, sizeof *p->row);
    bool have = p->call_seconds && p->row;
    for (int k = 0; k < KEEL_PHASE_COUNT; k++)
        have = (*by_worker[k] = keel_calloc((size_t)n, sizeof(double))) && have;
    if (!have) {
        keel_profile_destroy(p);
        return KEEL_ENOMEM;
    }
    p->peak_flops = keel_peak_flops();
    p->peak_bf16_flops = keel_peak_bf16_flops();
    p->peak_bytes = keel_peak_bytes();
    for (int i = 0; i < work->n; i++) {
        p->row[p->count].peak_flops = same ? peak_of(p, &g->node[i].node) : p->peak_flops;
        keel_profile_row *r = &p->row[p->count++];
        fill_row(r, work, timing, i);
        if (same)
            kernels_of(t->train.program, i, r->forward_kernel, r->backward_kernel,
                       r->weights_kernel);
    }
    for (int w = 0; w < n; w++) {
        const keel_timing_workspace *s = &timing->workspace[w];
        for (int64_t k = 0; k < (int64_t)work->n * KEEL_PASS_COUNT; k++)
            p->call_seconds[w] += 1e-9 * (double)s->call_ns[k];
        for (int k = 0; k < KEEL_PHASE_COUNT; k++)
            (*by_worker[k])[w] = 1e-9 * (double)s->phase_ns[k];
        p->lost_events += s->lost;
    }
    *out = p;
    return KEEL_OK;
}

void keel_profile_destroy(keel_profile *p)
{
    if (!p) return;
    keel_free(p->call_seconds);
    keel_free(p->merge_seconds);
    keel_free(p->wait_seconds);
    keel_free(p->reduce_seconds);
    keel_free(p->update_seconds);
    keel_free(p->read_seconds);
    keel_free(p->row);
    keel_free(p);
}

/* ---- trace --------------------------------------------------------------------------------------
 */

static const char *const pass_names[] = { "forward", "backward", "weights", "statistics",
                                          "statistics backward" };
static const char *const phase_names[] = { "merge", "wait", "reduce", "update", "rows" };

/* Add a name as JSON text; layer names come from files. */
static void add_name(keel_text *x, const char *name)
{
    keel_text_add(x, "\"");
    char shown[512];
    for (const char *c = keel_printable(shown, sizeof shown, name); *c; c++)
        keel_text_add(x, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
    keel_text_add(x, "\"");
}

/* p: whose kernels are named; NULL: those of several programs ran. */
static void add_event(keel_text *x, const keel_profile_work *work, const keel_program *p,
                      const keel_event *e, int worker, int64_t zero)
{
    char kernel[KEEL_KERNEL_NAME_MAX];
    const double begin = 1e-3 * (double)(e->begin - zero),
                 took = 1e-3 * (double)(e->end - e->begin);
    keel_text_add(x, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"name\":",
                  worker, begin, took);
    if (e->node < 0) {
        add_name(x, phase_names[e->what]);
        keel_text_add(x, ",\"cat\":\"phase\"}");
        return;
    }
    const struct keel_profile_node *n = &work->node[e->node];
    add_name(x, n->layer);
    keel_text_add(x, ",\"cat\":\"%s\",\"args\":{\"op\":\"%s\",\"pass\":\"%s\"", pass_names[e->what],
                  n->op->name, pass_names[e->what]);
    if (p)
        keel_text_add(x, ",\"kernel\":\"%s\"",
                      keel_program_kernel(p, e->node, (keel_pass)e->what, kernel));
    keel_text_add(x, "}}");
}

keel_status keel_trace_write(const char *path, const keel_trainer *t, const keel_timing *timing,
                             const keel_profile_work *work)
{
    const keel_program *p = t->trained.made == 1 ? t->train.program : NULL;
    keel_new_file *f = NULL;
    keel_text x = { 0 };
    int64_t zero = INT64_MAX;
    KEEL_TRY(keel_new_file_create(&f, path));
    for (int w = 0; w < timing->n_worker; w++)
        if (timing->workspace[w].n_event && timing->workspace[w].event[0].begin < zero)
            zero = timing->workspace[w].event[0].begin;
    keel_text_add(&x, "{\"traceEvents\":[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\","
                      "\"args\":{\"name\":\"keel fit\"}}");
    keel_status s = KEEL_OK;
    for (int w = 0; w < timing->n_worker && s >= 0; w++) {
        keel_text_add(&x,
                      ",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\","
                      "\"args\":{\"name\":\"worker %d\"}}",
                      w, w);
        for (int64_t i = 0; i < timing->workspace[w].n_event && s >= 0; i++) {
            add_event(&x, work, p, &timing->workspace[w].event[i], w, zero);
            if (x.failed)
                s = keel_fail(KEEL_ENOMEM, "%s: no memory for the trace", path);
            else if (x.length > 1 << 16) {
                s = keel_new_file_write(f, x.data, x.length);
                x.length = 0;
            }
        }
    }
    keel_text_add(&x, "\n]}\n");
    if (s >= 0 && x.failed) s = keel_fail(KEEL_ENOMEM, "%s: no memory for the trace", path);
    if (s >= 0) s = keel_new_file_write(f, x.data, x.length);
    keel_text_free(&x);
    if (s >= 0) return keel_new_file_commit(f);
    keel_new_file_abort(f);
    return s;
}
