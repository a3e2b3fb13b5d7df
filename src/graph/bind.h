/* Inside the graph room: what program.c shares with bind.c. */
#ifndef KEEL_GRAPH_BIND_H
#define KEEL_GRAPH_BIND_H
#include "graph/program.h"

/* The kernel of an op that is asked after those of rank *below (INT_MAX at first), which becomes
 * its own: that named `measured` (NULL: none) first, then by priority. NULL: the reference is next.
 */
const keel_kernel *keel_next_kernel(const keel_program *p, const keel_op *op, const char *measured,
                                    int *below);

/* Take down which kernel (NULL: the reference) runs a pass of a node; the first stays. */
void keel_ran_note(keel_program *p, int node, keel_pass pass, const keel_kernel *kernel,
                   bool widened);

void keel_bound_destroy(const keel_program *p, keel_bound *b);
void keel_prepared_destroy(keel_seat *s);

#endif
