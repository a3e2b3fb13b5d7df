/* What the ops that go through time share: simple_rnn, lstm, gru.
 *
 * A row brings z [T, gates U], what its steps have of their inputs: the layer makes it of x, kernel
 * and bias by one product over all steps (dense). The op adds the product of the state before the
 * step, h [U], and recurrent_kernel [U, gates U], and goes on to the next state. A step whose mask
 * is not above one half keeps the state and gives the output of the step before it, or 0. Steps are
 * numbered in the order in which they are taken, so with `backwards` step 0 reads the last of z.
 *
 * Saved for backward, of each step t: */
#ifndef KEEL_OPS_RECURRENT_H
#define KEEL_OPS_RECURRENT_H
#include "ops/args.h"
#include "ops/cases.h"
#include "ops/infer.h"

enum {
    KEEL_SAVED_GATES,  /* [T, parts U] what the gates gave. backward puts their gradients here,
                          which weights reads: those that recurrent_kernel's product gets first */
    KEEL_SAVED_BEFORE, /* [T, U] the state before the step */
    KEEL_SAVED_CELL,   /* lstm: [T, U] the carry after the step */
};

/* Of a reference's scratch, vectors of U: what a cell may use in a step, and all of it. */
enum { KEEL_STEP_ROOM = 10, KEEL_STEP_SCRATCH = KEEL_STEP_ROOM + 14 };

/* What a cell is made of. */
typedef struct keel_cell {
    int gates;  /* lstm 4, gru 3, simple_rnn 1 */
    int parts;  /* of what is saved of gates: gru has 4 */
    int states; /* lstm 2: state and carry; else 1 */
} keel_cell;
extern const keel_cell keel_cell_simple_rnn, keel_cell_lstm, keel_cell_gru;

typedef struct keel_steps {
    int64_t steps, units;
    int mask, state, drop; /* which inputs they are; -1: there is none */
    int pre; /* which saved value has what the gates' functions were given, [T, gates U]; -1: none
                needs it, slopes are known from what they gave */
} keel_steps;

/* Check inputs and weights, fill outputs, saved values and scratch. */
keel_status keel_recurrent_infer(keel_node *n, const keel_cell *cell);
keel_steps keel_recurrent_steps(const keel_node *n, const keel_cell *cell);
/* keel_op.weight_reads, .flops and .args_for_case of them all. */
int64_t keel_recurrent_reads(const keel_node *n, int weight);
double keel_recurrent_flops(const keel_node *n);
void keel_recurrent_case(void *args, const char *text);

/* What is the same in the ops of all cells. `infer` and the passes are those of the file. */
#define KEEL_RECURRENT_OP                                                                          \
    .args_size = sizeof(keel_recurrent_args), .infer = infer, .forward = REALS(forward),           \
    .backward = REALS(backward), .backward_reads = KEEL_READS_IN | KEEL_READS_SAVED,               \
    .weights = REALS(weights), .weights_reads = KEEL_READS_IN | KEEL_READS_SAVED,                  \
    .weights_after_backward = true, .weight_reads = keel_recurrent_reads,                          \
    .flops = keel_recurrent_flops, .costly = true, .args_for_case = keel_recurrent_case

/* Where the time of step t is. */
static inline int64_t keel_step_time(const keel_node *n, int64_t t, int64_t steps)
{
    return ((const keel_recurrent_args *)n->args)->backwards ? steps - 1 - t : t;
}

#endif
