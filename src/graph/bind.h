/* Inside the graph room: what program.c shares with bind.c. */
#ifndef KEEL_GRAPH_BIND_H
#define KEEL_GRAPH_BIND_H
#include "graph/program.h"

/* Take down which kernel (NULL: the reference) runs a pass of a node; the first stays. */
void keel_ran_note(keel_program *p, int node, keel_pass pass, const keel_kernel *kernel,
                   bool widened);

void keel_bound_destroy(const keel_program *p, keel_bound *b);
void keel_prepared_destroy(keel_seat *s, int n_node);

#endif
