/* The kernels of a worker's calls: each is chosen and prepared once for each pass of a node and
 * each number of rows, and found again later. Also notes which kernel was chosen, for reports. */
#include "base/memory.h"
#include "graph/bind.h"
#include "graph/choose.h"
#include <stdio.h>
#include <string.h>

static void free_prepared(keel_prepared *e)
{
    if (e->kernel && e->kernel->release) e->kernel->release(e->plan);
    keel_widened_destroy(e->widened);
    keel_staged_destroy(e->staged);
    keel_free(e);
}

void keel_prepared_destroy(keel_workspace *s, int n_node)
{
    for (int i = 0; s->prepared && i < n_node; i++)
        while (s->prepared[i]) {
            keel_prepared *e = s->prepared[i];
            s->prepared[i] = e->next;
            free_prepared(e);
        }
    keel_free(s->prepared);
}

/* Whose kernel is being prepared. */
typedef struct asking {
    keel_program *p;
    int node;
    keel_device *device;
} asking;

static keel_status derive(void *context, keel_derived *want, const keel_derived **got)
{
    const asking *a = context;
    const keel_graph_node *n = &a->p->graph->node[a->node];
    return keel_store_derive(a->p->store, a->p->user, n->weight[want->weight], want, got);
}

keel_run keel_reference_of(const keel_op *op, keel_pass pass, int r)
{
    switch (pass) {
    case KEEL_FORWARD:
        return op->forward[r];
    case KEEL_PARTIAL:
        return op->partial[r];
    case KEEL_BACKWARD:
        return op->backward[r];
    case KEEL_PARTIAL_BACKWARD:
        return op->partial_backward[r];
    default:
        return op->weights[r];
    }
}

/* Asks the kernels of the op for `n`, which is the node or its widened form; e->run stays NULL if
 * all refuse. narrow: asks for their passes on values of the node's narrow type. */
static keel_status ask_kernels(asking *a, keel_prepared *e, const keel_node *n, bool narrow)
{
    keel_choice c = { .node = n,
                      .pass = e->pass,
                      .rows = e->rows,
                      .in_adds = e->in_adds,
                      .weight_adds = e->weight_adds,
                      .narrow = narrow,
                      .widened = e->widened != NULL,
                      .device = a->device,
                      .derive = derive,
                      .context = a };
    KEEL_TRY(keel_choose_kernel(&a->p->options, &c));
    if (!c.kernel) return KEEL_OK;
    e->kernel = c.kernel;
    e->plan = c.plan;
    e->run = c.run;
    e->scratch = c.scratch;
    return KEEL_OK;
}

/* Asks kernels first, those for the narrow type before others on widened copies; the reference
 * comes last. */
static keel_status choose(asking *a, keel_prepared *e, const keel_node *n)
{
    e->scratch = n->scratch;
    if (keel_node_is_narrow(n)) {
        KEEL_TRY(ask_kernels(a, e, n, true));
        if (e->run) return KEEL_OK;
        KEEL_TRY(keel_widened_create(&e->widened, n, e->pass));
        n = &e->widened->node;
    }
    if (!a->device || !e->widened) KEEL_TRY(ask_kernels(a, e, n, false));
    if (!e->run) e->run = keel_reference_of(n->op, e->pass, n->real == KEEL_FLOAT64);
    if (!e->widened) return KEEL_OK;
    e->widened->run = e->run;
    e->widened->plan = e->plan;
    e->widened->scratch = e->scratch;
    e->run = keel_widened_run;
    e->scratch = keel_widened_bytes(e->widened, e->rows);
    return KEEL_OK;
}

/* What has no kernel for the device. */
static keel_status stage(keel_prepared *e, const keel_node *n)
{
    KEEL_TRY(keel_staged_create(&e->staged, n, e->pass));
    e->staged->run = e->run;
    e->staged->plan = e->widened ? (void *)e->widened : e->plan;
    e->staged->scratch = e->scratch;
    e->run = keel_staged_run;
    return KEEL_OK;
}

void *keel_prepared_plan(const keel_prepared *e)
{
    return e->staged ? (void *)e->staged : e->widened ? (void *)e->widened : e->plan;
}

static void note_scratch(keel_program *p, const keel_prepared *e, const asking *a)
{
    const keel_node *n = &p->graph->node[a->node].node;
    const int64_t host =
        keel_prepared_on_host(e, a->device) ? keel_staged_bytes(e->staged, n, e->rows) : 0;
    if (host > p->host_scratch_bytes) p->host_scratch_bytes = host;
    if (!host && e->scratch > p->scratch_bytes) p->scratch_bytes = e->scratch;
}

keel_status keel_prepare_call(keel_program *p, int worker, int node, keel_pass pass, int64_t rows,
                              bool in_adds, bool weight_adds, const keel_prepared **out)
{
    keel_workspace *workspace = &p->workspace[worker];
    for (const keel_prepared *e = workspace->prepared[node]; e; e = e->next)
        if (e->pass == pass && e->rows == rows && e->in_adds == in_adds &&
            e->weight_adds == weight_adds) {
            *out = e;
            return KEEL_OK;
        }
    keel_prepared *e = keel_calloc(1, sizeof *e);
    if (!e) return KEEL_ENOMEM;
    *e = (keel_prepared){
        .pass = pass, .rows = rows, .in_adds = in_adds, .weight_adds = weight_adds
    };
    const keel_node *n = &p->graph->node[node].node;
    asking a = { .p = p, .node = node, .device = p->lanes->device[worker] };
    keel_status s = choose(&a, e, n);
    if (s >= 0 && a.device && !e->kernel) s = stage(e, n);
    if (s < 0) {
        free_prepared(e);
        return s;
    }
    keel_ran_note(p, node, pass, e->kernel, e->widened != NULL);
    e->next = workspace->prepared[node];
    workspace->prepared[node] = e;
    note_scratch(p, e, &a);
    *out = e;
    return KEEL_OK;
}

/* ---- which kernel it is ---------------------------------------------------------------------- */

void keel_ran_note(keel_program *p, int node, keel_pass pass, const keel_kernel *kernel,
                   bool widened)
{
    struct keel_ran *r = &p->ran[node * KEEL_PASS_COUNT + (int)pass];
    if (!r->prepared) *r = (struct keel_ran){ true, widened, kernel };
}

char *keel_program_kernel(const keel_program *p, int node, keel_pass pass,
                          char out[KEEL_KERNEL_NAME_MAX])
{
    const struct keel_ran *r = &p->ran[node * KEEL_PASS_COUNT + (int)pass];
    const keel_node *n = &p->graph->node[node].node;
    const bool merged = pass == KEEL_WEIGHTS && keel_weights_from_merged(n);
    const bool skipped = (pass == KEEL_FORWARD && p->skip_forward[node]) ||
                         (pass == KEEL_BACKWARD && p->skip_backward[node]);
    *out = 0;
    if (r->prepared && merged)
        snprintf(out, KEEL_KERNEL_NAME_MAX, "from merged sums");
    else if (r->prepared && !skipped)
        snprintf(out, KEEL_KERNEL_NAME_MAX, "%s%s", r->kernel ? r->kernel->name : "reference",
                 r->widened ? ", widened" : "");
    return out;
}

/* Of a program on devices that cannot run references. */
static bool is_staged(const keel_program *p, int node)
{
    for (int k = 0; k < KEEL_PASS_COUNT; k++) {
        const bool skipped = (k == KEEL_FORWARD && p->skip_forward[node]) ||
                             (k == KEEL_BACKWARD && p->skip_backward[node]);
        const struct keel_ran *r = &p->ran[node * KEEL_PASS_COUNT + k];
        if (r->prepared && !r->kernel && !skipped) return true;
    }
    return false;
}

/* Whether a node before this one has the same op and is staged, too. */
static bool was_told(const keel_program *p, int node)
{
    for (int i = 0; i < node; i++)
        if (p->graph->node[i].node.op == p->graph->node[node].node.op && is_staged(p, i))
            return true;
    return false;
}

void keel_program_staged(const keel_program *p, keel_text *out)
{
    const keel_device *d = keel_lanes_device(p->lanes);
    if (!d || d->type->launch) return;
    for (int i = 0; i < p->graph->n_node; i++)
        if (is_staged(p, i) && !was_told(p, i))
            keel_text_add(out, "%s%s", out->length ? ", " : "", p->graph->node[i].node.op->name);
}

bool keel_program_is_slow(const keel_program *p, int node)
{
    enum { MANY = 256 }; /* elements of a row; with fewer, the cost is negligible */
    const keel_node *n = &p->graph->node[node].node;
    if (n->real != KEEL_FLOAT32)
        return false; /* float64 is for checks, and always runs the reference */
    if (!n->op->flops && !(n->op->costly && keel_row_count(&n->out[0]) >= MANY)) return false;
    for (int pass = 0; pass < KEEL_PASS_COUNT; pass++) {
        char name[KEEL_KERNEL_NAME_MAX];
        if (!strncmp(keel_program_kernel(p, node, (keel_pass)pass, name), "reference", 9))
            return true;
    }
    return false;
}
