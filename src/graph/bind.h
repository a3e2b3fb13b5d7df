/* Inside the graph room: what program.c frees of what bind.c made. */
#ifndef KEEL_GRAPH_BIND_H
#define KEEL_GRAPH_BIND_H
#include "graph/program.h"

void keel_bound_destroy(const keel_program *p, keel_bound *b);
void keel_prepared_destroy(keel_seat *s);

#endif
