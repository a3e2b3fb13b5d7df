/* What SimpleRNN, LSTM and GRU share with their cells. As in Keras, the layer holds a cell, which
 * has the weights; unlike in Keras, the cell is called once for all steps. */
#ifndef KEEL_LAYERS_RNN_CELL_H
#define KEEL_LAYERS_RNN_CELL_H
#include "layers/layer.h"
#include "ops/args.h"

typedef struct keel_cell_args {
    int64_t units;
    keel_object activation, recurrent_activation;
    bool use_bias, unit_forget_bias, reset_after;
    keel_object kernel_initializer, recurrent_initializer, bias_initializer;
    keel_object kernel_regularizer, recurrent_regularizer, bias_regularizer, kernel_constraint,
        recurrent_constraint, bias_constraint;
    double dropout, recurrent_dropout;
} keel_cell_args;

enum { KEEL_DRAW_OF_STATE = 1u << 31 }; /* first draw of the dropout of the state */

/* The first values of an LSTM's bias [4 U], gates i, f, g, o: ones for f, `around` elsewhere. */
typedef struct keel_forget_args {
    keel_object around;
} keel_forget_args;
extern const keel_initializer keel_unit_forget;

/* The arguments of a layer. Those of its cell come first, so that both use one field table. */
typedef struct keel_rnn_args {
    keel_cell_args cell;
    bool return_sequences, return_state, go_backwards, stateful, zero_output_for_mask;
} keel_rnn_args;

/* What a layer tells the cell that it calls: keel_emit.how. The outputs are all steps or the last
 * one and, with `states`, the states. stateful: unless the caller gives states, those of the step
 * before. */
typedef struct keel_over_time {
    bool sequences, states, backwards, zeros, stateful;
} keel_over_time;

#define KEEL_CELL_FIELDS                                                                           \
    KEEL_INT(keel_cell_args, units, NULL, 1, 1e6, "how many outputs of a step"),                   \
        KEEL_OBJECT(keel_cell_args, activation, "\"tanh\"", keel_activation_find,                  \
                    "of the new state"),                                                           \
        KEEL_BOOL(keel_cell_args, use_bias, "true", "add a bias"),                                 \
        KEEL_OBJECT(keel_cell_args, kernel_initializer, "\"glorot_uniform\"",                      \
                    keel_initializer_find, "first values of the kernel"),                          \
        KEEL_OBJECT(keel_cell_args, recurrent_initializer, "\"orthogonal\"",                       \
                    keel_initializer_find, "first values of the recurrent kernel"),                \
        KEEL_OBJECT(keel_cell_args, bias_initializer, "\"zeros\"", keel_initializer_find,          \
                    "first values of the bias"),                                                   \
        KEEL_OBJECT(keel_cell_args, kernel_regularizer, "null", keel_regularizer_find,             \
                    "of the kernel"),                                                              \
        KEEL_OBJECT(keel_cell_args, recurrent_regularizer, "null", keel_regularizer_find,          \
                    "of the recurrent kernel"),                                                    \
        KEEL_OBJECT(keel_cell_args, bias_regularizer, "null", keel_regularizer_find,               \
                    "of the bias"),                                                                \
        KEEL_OBJECT(keel_cell_args, kernel_constraint, "null", keel_constraint_find,               \
                    "of the kernel"),                                                              \
        KEEL_OBJECT(keel_cell_args, recurrent_constraint, "null", keel_constraint_find,            \
                    "of the recurrent kernel"),                                                    \
        KEEL_OBJECT(keel_cell_args, bias_constraint, "null", keel_constraint_find, "of the bias"), \
        KEEL_FLOAT(keel_cell_args, dropout, "0.0", 0, 1,                                           \
                   "the fraction of inputs that is dropped, the same at all steps"),               \
        KEEL_FLOAT(keel_cell_args, recurrent_dropout, "0.0", 0, 1,                                 \
                   "the fraction of the state that is dropped, the same at all steps"),            \
        KEEL_IGNORE("seed", "the seed of the run decides")
#define KEEL_GATE_FIELDS                                                                           \
    KEEL_OBJECT(keel_cell_args, recurrent_activation, "\"sigmoid\"", keel_activation_find,         \
                "of the gates")
#define KEEL_FORGET_FIELDS                                                                         \
    KEEL_BOOL(keel_cell_args, unit_forget_bias, "true", "the forget gate's bias begins as 1")
#define KEEL_RESET_FIELDS                                                                          \
    KEEL_BOOL(keel_cell_args, reset_after, "true",                                                 \
              "the reset gate acts on the state's product, not on the state")
#define KEEL_RNN_FIELDS                                                                            \
    KEEL_BOOL(keel_rnn_args, return_sequences, "false", "the outputs of all steps"),               \
        KEEL_BOOL(keel_rnn_args, return_state, "false", "the states after the last step, too"),    \
        KEEL_BOOL(keel_rnn_args, go_backwards, "false", "from the last step to the first"),        \
        KEEL_BOOL(keel_rnn_args, stateful, "false",                                                \
                  "a row begins with the state in which that row of the batch before ended"),      \
        KEEL_IGNORE("unroll", "another way to the same result"),                                   \
        KEEL_BOOL(keel_rnn_args, zero_output_for_mask, "false",                                    \
                  "the output of a step that does not count is 0, not that before it"),            \
        KEEL_IGNORE("use_cudnn", "another way to the same result")

enum { KEEL_STATES_MAX = 16 }; /* of all cells of a layer */

/* Emits a cell over all steps. gates: how many parts its kernel has; states: how many states it
 * has. */
keel_status keel_cell_emit(keel_emit *e, const keel_op *op, int gates, int states);

/* Makes the cell of a layer, with Keras's names: "LSTMCell", "lstm_cell". */
keel_status keel_rnn_make(keel_emit *e, const char *class_name, const char *name);
/* The mask that is used. Keras gives the mask of a layer's input to a layer without other tensors
 * as arguments. With initial_state the mask is passed on, but all steps count, unless the call has
 * mask=. */
keel_value keel_rnn_mask(const keel_emit *e);
/* Calls the layer's cell for all steps: keel_layer.emit. */
keel_status keel_rnn_emit(keel_emit *e);

#endif
