/* See fuse_impl.h. Layers that share an input may each begin with the same op on it: NASNet's
 * branches rectify it, layers in one dim see it as an image, layers of another type convert it. */
#include "graph/fuse_impl.h"
#include "ops/all.h"
#include <string.h>

/* Whether the op, of one input, makes the same of the same: it has no weights, states or chance. */
static bool repeatable(const keel_graph_node *n)
{
    static const keel_op *const ops[] = { &keel_op_relu, &keel_op_relu6, &keel_op_reshape,
                                          &keel_op_cast };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (n->node.op == ops[i]) return true;
    return false;
}

static bool same(const keel_graph_node *a, const keel_graph_node *b)
{
    return a->node.op == b->node.op && a->in[0] == b->in[0] && a->node.held == b->node.held &&
           memcmp(a->args, b->args, a->node.op->args_size) == 0;
}

/* Whether a node from `at` on reads both values, which must stay two then: where gradients flow,
 * the inputs of a node are distinct (see keel_graph_add). */
static bool read_together(const keel_fuser *f, int at, keel_value a, keel_value b)
{
    for (; at < f->g->n_node; at++) {
        const keel_graph_node *n = &f->g->node[at];
        bool reads_a = false, reads_b = false;
        for (int k = 0; k < n->node.n_in; k++) {
            reads_a = reads_a || f->name[n->in[k]] == a;
            reads_b = reads_b || f->name[n->in[k]] == b;
        }
        if (reads_a && reads_b && !f->dead[at]) return true;
    }
    return false;
}

keel_status keel_fuse_same(keel_fuser *f, keel_value *keep, int n_keep)
{
    keel_graph *g = f->g;
    for (int i = 0; i < g->n_node; i++) {
        keel_graph_node *n = &g->node[i];
        for (int k = 0; k < n->node.n_in; k++) n->in[k] = f->name[n->in[k]];
        if (!repeatable(n) || f->uses[n->in[0]] < 2) continue;
        const int maker = g->value[n->in[0]].node;
        for (int k = maker + 1; k < i; k++) {
            keel_graph_node *earlier = &g->node[k];
            if (f->dead[k] || !repeatable(earlier) || !same(earlier, n) ||
                read_together(f, i + 1, earlier->out[0], n->out[0]))
                continue;
            KEEL_TRY(keel_add_layer(earlier, earlier->node.layer, n->node.layer));
            f->dead[i] = true;
            f->name[n->out[0]] = earlier->out[0];
            f->uses[n->in[0]]--;
            f->uses[earlier->out[0]] += f->uses[n->out[0]];
            break;
        }
    }
    for (int i = 0; i < n_keep; i++) keep[i] = f->name[keep[i]];
    return KEEL_OK;
}
