/* Runs a graph on one row at a time, in memory of the caller: for rows that are changed while they
 * are read, where a program, with lanes, workers and arenas, would be too much. It is constant, so
 * that any number of threads run it at once. Only the references of ops run, so bits do not depend
 * on the processor.
 *
 * Bytes of an input are widened as late as they can be: an op that only moves them moves bytes, and
 * what comes out of such ops alone is bytes again. */
#ifndef KEEL_GRAPH_ROWS_H
#define KEEL_GRAPH_ROWS_H
#include "base/scratch.h"
#include "graph/graph.h"

typedef struct keel_rows keel_rows;

/* Takes over the graph, also on failure. weight: the values of each variable of the graph, borrowed
 * as long as it lives; NULL: it has none. KEEL_EUNSUP names a layer that needs more than a row. */
keel_status keel_rows_create(keel_rows **out, keel_graph *graph, const keel_value *output,
                             int n_output, const void *const *weight);
void keel_rows_destroy(keel_rows *r); /* NULL is allowed */

/* What an output gives: integers as they are, real numbers in the type of the graph, and bytes that
 * were only moved. */
const keel_spec *keel_rows_spec(const keel_rows *r, int output);

/* True if the output may lie where the input is. */
bool keel_rows_in_place(const keel_rows *r);

/* The bytes of scratch that a row takes, besides those of look-ups. */
int64_t keel_rows_bytes(const keel_rows *r);

/* One row: in [inputs that no look-up makes], out [n_output]. `row` is added to step->first_row as
 * the row of random numbers. Uses buffer 0 of scratch. */
keel_status keel_rows_run(const keel_rows *r, const keel_step_facts *step, int64_t row,
                          const void *const *in, void *const *out, keel_scratch *scratch);

#endif
