/* See choose.h. */
#include "graph/choose.h"
#include "device/cpu/cpu.h"
#include "graph/tuned.h"
#include <limits.h>
#include <string.h>

/* The kernel of the op to ask next, after those of rank *below (INT_MAX at first), which becomes
 * its own rank: the kernel named `measured` (NULL: none) first, then by priority. NULL: only the
 * reference is left. */
static const keel_kernel *next_kernel(const keel_program_options *o, const keel_kernel *const *all,
                                      const keel_op *op, const char *measured, int *below)
{
    const keel_kernel *best = NULL;
    int rank = INT_MIN;
    for (int i = 0; all && all[i] && !o->reference_only; i++) {
        const keel_kernel *k = all[i];
        const bool left_out = o->without && !strcmp(k->name, o->without);
        const bool first = measured && !strcmp(k->name, measured);
        const int own = first ? INT_MAX - 1 : k->priority;
        if (left_out || k->op != op || own >= *below || own <= rank) continue;
        best = k;
        rank = own;
    }
    *below = rank;
    return best;
}

/* The kernel's passes for the type that the node's values are stored in. */
static keel_run run_of(const keel_choice *c, const keel_kernel *k)
{
    if (!c->narrow) return k->run[c->pass];
    return (c->node->held == KEEL_FLOAT16 ? k->half : k->narrow)[c->pass];
}

static keel_tile_run tile_of(const keel_choice *c, const keel_kernel *k)
{
    if (!c->narrow) return k->weights_tile;
    return c->node->held == KEEL_FLOAT16 ? NULL : k->narrow_tile;
}

static bool has_pass(const keel_choice *c, const keel_kernel *k)
{
    return c->tile ? tile_of(c, k) != NULL : run_of(c, k) != NULL;
}

/* What the table names for the node; NULL: nothing. A device and widened copies have no table. */
static const char *measured_kernel(const keel_choice *c, keel_float32 float32)
{
    const bool bfloat16 = c->narrow && c->node->held == KEEL_BFLOAT16;
    if (c->device || c->widened || (c->narrow && !bfloat16)) return NULL;
    return keel_tuned_kernel(c->node, c->pass, bfloat16 ? KEEL_TUNED_BFLOAT16 : (int)float32);
}

keel_status keel_kernel_prepare(const keel_kernel *k, keel_prepare *p)
{
    return (int)keel_cpu_level() < k->needs ? KEEL_EUNSUP : k->prepare(p);
}

keel_status keel_choose_kernel(const keel_program_options *o, keel_choice *c)
{
    const bool mixed = c->narrow || c->widened; /* its values are not float32 */
    const keel_float32 float32 = mixed ? KEEL_FLOAT32_FMA : o->float32;
    const char *const measured = measured_kernel(c, float32);
    const keel_kernel *const *all = c->device ? c->device->type->kernels : keel_kernels;
    const keel_kernel *k;
    for (int below = INT_MAX; (k = next_kernel(o, all, c->node->op, measured, &below)) != NULL;) {
        if (!has_pass(c, k)) continue;
        keel_prepare q = { .node = c->node,
                           .pass = c->pass,
                           .rows = c->rows,
                           .in_adds = c->in_adds,
                           .weight_adds = c->weight_adds,
                           .float32 = float32,
                           .device = c->device,
                           .measured = measured && !strcmp(k->name, measured),
                           .derive = c->derive,
                           .context = c->context };
        const keel_status s = keel_kernel_prepare(k, &q);
        if (s == KEEL_EUNSUP) continue;
        if (s < 0) return keel_fail_within(s, "layer '%s'", c->node->layer);
        c->kernel = k;
        c->run = run_of(c, k);
        c->run_tile = tile_of(c, k);
        c->plan = q.plan;
        c->scratch = q.scratch;
        return KEEL_OK;
    }
    return KEEL_OK;
}
