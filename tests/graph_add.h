/* Adding nodes to a graph in a line: what the tests of the graph room share. */
#ifndef TESTS_GRAPH_ADD_H
#define TESTS_GRAPH_ADD_H
#include "graph/graph.h"
#include "ops/all.h"

/* A node of one output, with weights weight[n_weight] of the specs `spec`. */
static inline keel_status graph_add(keel_graph *g, const keel_op *op, const void *args,
                                    const keel_value *in, int n_in, const keel_variable *weight,
                                    const keel_spec *spec, int n_weight, keel_value *out)
{
    const keel_node_parts parts = { .op = op,
                                    .args = args,
                                    .n_in = n_in,
                                    .in = in,
                                    .n_weight = n_weight,
                                    .weight = weight,
                                    .weight_spec = spec };
    return keel_graph_add(g, &parts, out, 1);
}

#endif
