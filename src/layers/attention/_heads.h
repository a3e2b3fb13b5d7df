/* What MultiHeadAttention and GroupedQueryAttention share: their arguments, those of their calls,
 * their projections, which are layers as in Keras, and masks. */
#ifndef KEEL_LAYERS_ATTENTION_HEADS_H
#define KEEL_LAYERS_ATTENTION_HEADS_H
#include "layers/layer.h"
#include "ops/args.h"

/* The first member of the args of both. */
typedef struct keel_heads_args {
    int64_t sliding_window;
    double dropout;
    bool use_bias, use_gate;
    keel_object kernel_initializer, bias_initializer;
    keel_object kernel_regularizer, bias_regularizer, kernel_constraint, bias_constraint;
} keel_heads_args;

#define KEEL_HEADS_FIELDS                                                                          \
    KEEL_FLOAT(keel_heads_args, dropout, "0.0", 0, 1, "the fraction of weights that is dropped"),  \
        KEEL_BOOL(keel_heads_args, use_bias, "true", "add a bias to each projection"),             \
        KEEL_BOOL(keel_heads_args, use_gate, "false",                                              \
                  "multiply the heads by a sigmoid of the query"),                                 \
        KEEL_INT(keel_heads_args, sliding_window, "null", 1, 1e15,                                 \
                 "how far a place sees; null: any distance"),                                      \
        KEEL_IGNORE("flash_attention", "another way to the same result"),                          \
        KEEL_OBJECT(keel_heads_args, kernel_initializer, "\"glorot_uniform\"",                     \
                    keel_initializer_find, "first values of the kernels"),                         \
        KEEL_OBJECT(keel_heads_args, bias_initializer, "\"zeros\"", keel_initializer_find,         \
                    "first values of the biases"),                                                 \
        KEEL_OBJECT(keel_heads_args, kernel_regularizer, "null", keel_regularizer_find,            \
                    "of the kernels"),                                                             \
        KEEL_OBJECT(keel_heads_args, bias_regularizer, "null", keel_regularizer_find,              \
                    "of the biases"),                                                              \
        KEEL_OBJECT(keel_heads_args, kernel_constraint, "null", keel_constraint_find,              \
                    "of the kernels"),                                                             \
        KEEL_OBJECT(keel_heads_args, bias_constraint, "null", keel_constraint_find,                \
                    "of the biases"),                                                              \
        KEEL_IGNORE("seed", "the seed of the run decides")

/* The inputs of a call, which have names in Keras. */
enum {
    KEEL_HEADS_QUERY,
    KEEL_HEADS_VALUE,
    KEEL_HEADS_KEY,
    KEEL_HEADS_QUERY_MASK,
    KEEL_HEADS_VALUE_MASK,
    KEEL_HEADS_KEY_MASK,
    KEEL_HEADS_ATTENTION_MASK,
    KEEL_HEADS_INPUTS
};

typedef struct keel_heads_call {
    int in[KEEL_HEADS_INPUTS]; /* which input of the layer; -1: not given */
    bool scores, causal;
} keel_heads_call;

keel_status keel_heads_read(const keel_emit *e, keel_heads_call *out);
keel_value keel_heads_key(const keel_emit *e, const keel_heads_call *c);

/* Makes a projection, called by `key`: from rows of rank `rank`, whose last `sums` dims are summed
 * over, to `dims`. */
keel_status keel_heads_dense(keel_emit *e, const char *key, const char *name, int rank, int sums,
                             const keel_ints *dims, const char *activation);
keel_status keel_heads_project(keel_emit *e, const char *key, keel_value in, keel_value *out);

/* Softmax of the scores [others.., heads, T, S] over what is seen, in place, by the query's mask
 * `query`, -1: none, those of value and key, and that of the call. `plain`: what attends is the
 * last dim before the features, and no other. */
keel_status keel_heads_weigh(keel_emit *e, const keel_heads_call *c, keel_value query, bool plain,
                             keel_value *scores);

/* The weighted sum of the values, without scores in memory, from the heads [others.., T, heads,
 * size] of query, key and value; masks as above. */
keel_status keel_heads_attend(keel_emit *e, const keel_heads_call *c, keel_value query_mask,
                              bool plain, double scale, const keel_value of[3], keel_value *out);

#endif
