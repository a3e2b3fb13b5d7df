/* Gradients of values, as ops: for gradients that are differentiated themselves. */
#ifndef KEEL_GRAPH_DERIVE_H
#define KEEL_GRAPH_DERIVE_H
#include "graph/graph.h"

/* Adds ops that compute, for each row, the gradient of the sum of y with respect to x. *out: a
 * value of x's shape. KEEL_EUNSUP: an op between them cannot be differentiated twice, which the
 * text names with its layer; KEEL_EARG: y does not depend on x. */
keel_status keel_graph_derive(keel_graph *g, keel_value y, keel_value x, keel_value *out);

#endif
