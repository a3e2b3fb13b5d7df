/* A program of one worker without devices, whose large calls are made in parts by several threads:
 * phases of turns, as base/crew.h shares them. A row may be all rows of a step that surrounds it
 * (train/whole_loss.h), so nothing else would divide it. */
#ifndef KEEL_GRAPH_PARTS_H
#define KEEL_GRAPH_PARTS_H
#include "graph/program.h"

typedef struct keel_parts keel_parts;

enum { KEEL_PARTS_MOST = 64 }; /* of a call, about; more would only help more threads */

/* For runs of a bound of one row, in which up to `places` threads take part, at most
 * KEEL_PARTS_MOST. What is cut, and where, depends on shapes alone, so bits do not depend on the
 * threads. The program lives longer, and nothing else is bound afterwards. */
keel_status keel_parts_create(keel_parts **out, keel_program *p, const keel_bound *b, int places);
void keel_parts_destroy(keel_parts *x); /* NULL is allowed */

/* The turns of each phase. A program of little work has one phase of one turn. */
const int *keel_parts_turns(const keel_parts *x, int *n_phase);
int64_t keel_parts_bytes(const keel_parts *x); /* what the threads compute in */

/* Before a run, by one thread; p->input is set. Then all turns, by any threads, each of them with a
 * place of its own. The result of the run is p->failure[0]. */
void keel_parts_begin(keel_parts *x);
void keel_parts_run(keel_parts *x, int number, int turn, int place);

#endif
