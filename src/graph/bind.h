/* Inside the graph room: what its files share to bind a program. */
#ifndef KEEL_GRAPH_BIND_H
#define KEEL_GRAPH_BIND_H
#include "graph/program.h"
#include "graph/staged.h"
#include "graph/widen.h"

/* prepared.c: a kernel prepared for the calls of a node with a given number of rows. */
typedef struct keel_prepared keel_prepared;
struct keel_prepared {
    keel_prepared *next; /* of the same node */
    keel_pass pass;
    int64_t rows;
    bool in_adds, weight_adds;
    const keel_kernel *kernel; /* NULL: the reference */
    void *plan;
    keel_run run; /* the kernel's or the reference; or keel_widened_run, which runs `widened`; or
                     keel_staged_run, which runs either of the last two */
    keel_widened *widened;
    keel_staged *staged;
    int64_t scratch;
};

/* The prepared kernel for these calls, found in worker's list or made. The scratch that it needs is
 * noted in the program. */
keel_status keel_prepare_call(keel_program *p, int worker, int node, keel_pass pass, int64_t rows,
                              bool in_adds, bool weight_adds, const keel_prepared **out);
void keel_prepared_destroy(keel_workspace *s, int n_node);
void *keel_prepared_plan(const keel_prepared *e); /* of its calls */

/* Whether its calls work in the host's scratch although the rows are on a device. */
static inline bool keel_prepared_on_host(const keel_prepared *e, const keel_device *d)
{
    return e->staged && !d->type->launch;
}

/* What runs a pass without a kernel. r: 0 float32, 1 float64 */
keel_run keel_reference_of(const keel_op *op, keel_pass pass, int r);

/* Notes which kernel runs a pass of a node; NULL: the reference. The first note stays. */
void keel_ran_note(keel_program *p, int node, keel_pass pass, const keel_kernel *kernel,
                   bool widened);

/* Every other segment takes its rows from the last to the first, because the rows that were used
 * last are still in the cache. */
static inline bool keel_segment_upward(int segment)
{
    return segment % 2 == 0;
}

/* records.c: doubles of a record in this pass, and how many rows one call may write, of so many
 * doubles each. */
int64_t keel_records_of(const keel_node *n, keel_pass pass);
keel_combine keel_records_combine(const keel_program *p, const keel_node *n, keel_pass pass);
int64_t keel_records_rows(const keel_lanes *l, int64_t leaf);
/* Doubles of a node of the tree in a worker's stack: {rows, record of any of its rows}. */
int64_t keel_records_stride(const keel_program *p, const keel_node *n, keel_pass pass);
keel_status keel_records_place(keel_program *p);
keel_status keel_records_bind(keel_bound *b, const keel_lanes *l);
/* The records of the call's rows, from those at `leaf`. */
void keel_records_fold(const keel_bound *b, const keel_bound_call *c, keel_workspace *workspace,
                       const double *leaf);
/* One row is pushed on a stack of `depth` nodes of {rows, record}, and completes `closes` more. */
void keel_records_push(const keel_node *n, const keel_fold *f, double *stack, int depth, int closes,
                       const double *leaf);
void keel_records_merge(const keel_program *p, const keel_bound *b, int segment, int worker);
/* By one worker, behind a meeting: the records that `segment` merges go to all processes. */
keel_status keel_records_send(const keel_program *p, const keel_bound *b, int segment);
/* By the same one, before another meeting: those of all are here. */
keel_status keel_records_receive(const keel_program *p);

/* tiles.c: sets the size of workspace.tiles, once it is known who makes which tiles. */
keel_status keel_tiles_place(keel_program *p);

/* moved.c: what the calls of a node read instead of state that other nodes move before it. */
keel_status keel_moved_place(keel_program *p);
void keel_moved_free(keel_program *p);
const void **keel_moved_weights(const keel_program *p, int worker, int node);
/* During a step: the records of node `merged` are complete, so the worker's copies move. */
void keel_moved_see(const keel_program *p, int merged, int worker);

/* program.c: takes the memory of all workers from the arenas. If a buffer has moved since the last
 * time, nothing is bound any more. */
keel_status keel_program_settle(keel_program *p);

void keel_bound_destroy(const keel_program *p, keel_bound *b);

/* run.c: sets the pointers of a worker's calls into the batch. input [n_input] as
 * keel_program.input. */
void keel_bound_patch(const keel_bound_workspace *s, const void *const *input);

/* run.c: what a worker's run is made of. At its beginning; in front of the calls of a segment; and
 * each call. */
void keel_program_begin(keel_program *p, const keel_bound *b, int worker);
void keel_program_merge(const keel_program *p, const keel_bound *b, int segment, int worker);
void keel_program_call(const keel_program *p, const keel_bound *b, const keel_bound_call *c,
                       int worker);

#endif
