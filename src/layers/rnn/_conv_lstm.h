/* What ConvLSTM1D to 3D share: an LSTM whose products with input and state are convolutions, of one
 * to three dims of places. */
#ifndef KEEL_LAYERS_RNN_CONV_LSTM_H
#define KEEL_LAYERS_RNN_CONV_LSTM_H
#include "layers/rnn/_cell.h"

typedef struct keel_conv_lstm_args {
    int64_t filters;
    keel_ints kernel_size, strides, dilation_rate;
    int padding, data_format;
    keel_object activation, recurrent_activation;
    bool use_bias, unit_forget_bias;
    keel_object kernel_initializer, recurrent_initializer, bias_initializer;
    keel_object kernel_regularizer, recurrent_regularizer, bias_regularizer;
    keel_object kernel_constraint, recurrent_constraint, bias_constraint;
    double dropout, recurrent_dropout;
    bool return_sequences, return_state, go_backwards, stateful, zero_output_for_mask;
} keel_conv_lstm_args;

/* ones: a list of `dims` ones, as JSON. */
#define KEEL_CONV_LSTM_FIELDS(dims, ones)                                                          \
    KEEL_INT(keel_conv_lstm_args, filters, NULL, 1, 1e9, "how many output channels"),              \
        KEEL_INTS(keel_conv_lstm_args, kernel_size, dims, NULL, 1, 65536, "size of the window"),   \
        KEEL_INTS(keel_conv_lstm_args, strides, dims, ones, 1, 65536,                              \
                  "steps of the window over the input"),                                           \
        KEEL_CHOICE(keel_conv_lstm_args, padding, "\"valid\"", "valid|same",                       \
                    "zeros around the input's places, or none"),                                   \
        KEEL_DATA_FORMAT(keel_conv_lstm_args),                                                     \
        KEEL_INTS(keel_conv_lstm_args, dilation_rate, dims, ones, 1, 65536,                        \
                  "distance of the window's points over the input"),                               \
        KEEL_OBJECT(keel_conv_lstm_args, activation, "\"tanh\"", keel_activation_find,             \
                    "of the new state"),                                                           \
        KEEL_OBJECT(keel_conv_lstm_args, recurrent_activation, "\"sigmoid\"",                      \
                    keel_activation_find, "of the gates"),                                         \
        KEEL_BOOL(keel_conv_lstm_args, use_bias, "true", "add a bias"),                            \
        KEEL_OBJECT(keel_conv_lstm_args, kernel_initializer, "\"glorot_uniform\"",                 \
                    keel_initializer_find, "first values of the kernel"),                          \
        KEEL_OBJECT(keel_conv_lstm_args, recurrent_initializer, "\"orthogonal\"",                  \
                    keel_initializer_find, "first values of the recurrent kernel"),                \
        KEEL_OBJECT(keel_conv_lstm_args, bias_initializer, "\"zeros\"", keel_initializer_find,     \
                    "first values of the bias"),                                                   \
        KEEL_BOOL(keel_conv_lstm_args, unit_forget_bias, "true",                                   \
                  "the forget gate's bias begins as 1"),                                           \
        KEEL_OBJECT(keel_conv_lstm_args, kernel_regularizer, "null", keel_regularizer_find,        \
                    "of the kernel"),                                                              \
        KEEL_OBJECT(keel_conv_lstm_args, recurrent_regularizer, "null", keel_regularizer_find,     \
                    "of the recurrent kernel"),                                                    \
        KEEL_OBJECT(keel_conv_lstm_args, bias_regularizer, "null", keel_regularizer_find,          \
                    "of the bias"),                                                                \
        KEEL_OBJECT(keel_conv_lstm_args, kernel_constraint, "null", keel_constraint_find,          \
                    "of the kernel"),                                                              \
        KEEL_OBJECT(keel_conv_lstm_args, recurrent_constraint, "null", keel_constraint_find,       \
                    "of the recurrent kernel"),                                                    \
        KEEL_OBJECT(keel_conv_lstm_args, bias_constraint, "null", keel_constraint_find,            \
                    "of the bias"),                                                                \
        KEEL_FLOAT(keel_conv_lstm_args, dropout, "0.0", 0, 1,                                      \
                   "the fraction of inputs that is dropped, the same at all steps"),               \
        KEEL_FLOAT(keel_conv_lstm_args, recurrent_dropout, "0.0", 0, 1,                            \
                   "the fraction of the state that is dropped, the same at all steps"),            \
        KEEL_BOOL(keel_conv_lstm_args, return_sequences, "false", "the outputs of all steps"),     \
        KEEL_BOOL(keel_conv_lstm_args, return_state, "false",                                      \
                  "the states after the last step, too"),                                          \
        KEEL_BOOL(keel_conv_lstm_args, go_backwards, "false", "from the last step to the first"),  \
        KEEL_BOOL(keel_conv_lstm_args, stateful, "false",                                          \
                  "a row begins with the state in which that row of the batch before ended"),      \
        KEEL_IGNORE("unroll", "another way to the same result"),                                   \
        KEEL_BOOL(keel_conv_lstm_args, zero_output_for_mask, "false",                              \
                  "the output of a step that does not count is 0, not that before it"),            \
        KEEL_IGNORE("seed", "the seed of the run decides")

/* The emit of such a layer: e->args is a keel_conv_lstm_args. */
keel_status keel_conv_lstm_emit(keel_emit *e, int dims);

#endif
