/* Shared by fuse.c, which takes one op into another, fuse_order.c, which has two change places, and
 * fuse_same.c, which makes one of two. */
#ifndef KEEL_GRAPH_FUSE_IMPL_H
#define KEEL_GRAPH_FUSE_IMPL_H
#include "graph/graph.h"

typedef struct keel_fuser {
    keel_graph *g;
    int *uses;        /* [n_value] */
    keel_value *name; /* [n_value] the value that replaces it; itself if nothing changed */
    bool *dead;       /* [n_node] */
} keel_fuser;

/* The node that makes input k of node n, if no other node reads that value and its op is `op`; else
 * NULL. */
keel_graph_node *keel_only_maker(const keel_fuser *f, const keel_graph_node *n, int k,
                                 const keel_op *op);

/* The node is called by both layers, "first + second", of which one is its own. */
keel_status keel_add_layer(keel_graph_node *to, const char *first, const char *second);

/* Of nodes that do the same with the same value only the first is left. Values of keep [n_keep] get
 * the names of those that replace them. */
keel_status keel_fuse_same(keel_fuser *f, keel_value *keep, int n_keep);

/* Move the op of node *n before the op that makes its input, where that is less work (see fuse.h).
 * The two nodes then change places in the list, and *n points to the op's new place. */
keel_status keel_order_conv(const keel_fuser *f, keel_graph_node **n);
keel_status keel_order_add(keel_fuser *f, keel_graph_node **n);
keel_status keel_order_pool(const keel_fuser *f, keel_graph_node **n);

#endif
