/* Which of the kernels of a node was measured to be the fastest, by kind of processor and class of
 * shape. The table is tuned.inc, written by `make tune` on a machine of that kind, and committed.
 * Nothing is timed while a model trains, so bits do not change from run to run. The number of rows
 * is not part of a class: one lane and many must run the same kernels. */
#ifndef KEEL_GRAPH_TUNED_H
#define KEEL_GRAPH_TUNED_H
#include "ops/op.h"

/* The column of a table's kernels: a keel_float32, or values that are held in bfloat16. */
enum { KEEL_TUNED_BFLOAT16 = KEEL_FLOAT32_FAST + 1, KEEL_TUNED_COLUMNS };

typedef struct keel_tuned {
    const char *level; /* keel_cpu_isa_name */
    const keel_op *op;
    keel_pass pass;
    int64_t window, stride; /* side of a square window; 1 for dense */
    int64_t c, k, places;   /* channels in and out, places of a row of the output */
    /* by column: the kernel's name; "": as for KEEL_FLOAT32_FMA or, for that one and for bfloat16,
     * the first by priority */
    const char *kernel[KEEL_TUNED_COLUMNS];
} keel_tuned;

extern const keel_tuned keel_tuned_rows[]; /* ends with level NULL */

/* The class of a node's shape. false: it has none (another op, groups, odd windows). */
bool keel_tuned_class(const keel_node *n, keel_tuned *out);

/* The kernel to ask first for a pass of `n`: that of the nearest class on this kind of processor
 * whose c, k and places are each within a factor of two. NULL: nothing similar was measured. */
const char *keel_tuned_kernel(const keel_node *n, keel_pass pass, int column);

#endif
