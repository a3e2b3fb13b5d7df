/* What MultiHeadAttention and GroupedQueryAttention share: their arguments, those of their calls,
 * their projections, which are layers as in Keras, and masks. */
#ifndef KEEL_LAYERS_ATTENTION_HEADS_H
#define KEEL_LAYERS_ATTENTION_HEADS_H
#include "layers/_kernel.h"
#include "ops/args.h"

/* The first member of the args of both. */
typedef struct keel_heads_args {
    keel_kernel_args weights; /* of each projection */
    int64_t sliding_window;
    double dropout;
    bool use_bias, use_gate;
} keel_heads_args;

#define KEEL_HEADS_FIELDS                                                                          \
    KEEL_FLOAT(keel_heads_args, dropout, "0.0", 0, 1, "the fraction of weights that is dropped"),  \
        KEEL_BOOL(keel_heads_args, use_bias, "true", "add a bias to each projection"),             \
        { .key = "use_gate",                                                                       \
          .kind = KEEL_FIELD_BOOL,                                                                 \
          .offset = offsetof(keel_heads_args, use_gate),                                           \
          .dflt = "false",                                                                         \
          .newer = true,                                                                           \
          .help = "multiply the heads by a sigmoid of the query" },                                \
        { .key = "sliding_window",                                                                 \
          .kind = KEEL_FIELD_INT,                                                                  \
          .offset = offsetof(keel_heads_args, sliding_window),                                     \
          .dflt = "null",                                                                          \
          .min = 1,                                                                                \
          .max = 1e15,                                                                             \
          .newer = true,                                                                           \
          .help = "how far a place sees; null: any distance" },                                    \
        KEEL_IGNORE("flash_attention", "another way to the same result"), KEEL_KERNEL_FIELDS,      \
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
    const json_t *mask;        /* an attention_mask that is an array; NULL: it is none */
    bool scores, causal;
} keel_heads_call;

/* The names of the projections as Keras's classes have them. */
typedef struct keel_heads_keys {
    const char *query, *key, *value, *output;
} keel_heads_keys;

/* The rows of query, key and value. */
keel_status keel_heads_shapes(const keel_emit *e, keel_shape of[3]);

/* {heads, size} of each projection of these rows; the dims of the output, none: the query's. */
typedef struct keel_heads_sizes {
    keel_ints query, key, value, gate, output;
} keel_heads_sizes;
/* Makes the projections and what comes between them. */
keel_status keel_heads_make(keel_emit *e, const keel_heads_keys *keys, const keel_shape of[3],
                            const keel_heads_sizes *to);

/* What the heads of query, key and value, [.., T, heads, size], become, in the same form; `mask`
 * is the query's, -1: none. */
typedef keel_status (*keel_heads_join)(keel_emit *e, const keel_heads_call *c, keel_value mask,
                                       keel_value of[3], keel_value *y);
/* The emit of such a layer. */
keel_status keel_heads_emit(keel_emit *e, const keel_heads_keys *keys, keel_heads_join join);

/* The weighted sum of the values, with the scores in memory and as the second output: of matrices
 * [others.., heads, T, size], the key's transposed. Their product is seen as `scores`,
 * [others.., heads, T, S], and given as `given`. `plain`: what attends is the last dim before the
 * features, and no other. */
keel_status keel_heads_score(keel_emit *e, const keel_heads_call *c, keel_value mask, bool plain,
                             double scale, const keel_value of[3], const keel_shape *scores,
                             const keel_shape *given, keel_value *y);

/* The same without scores in memory, from the heads [others.., T, heads, size] of query, key and
 * value. */
keel_status keel_heads_attend(keel_emit *e, const keel_heads_call *c, keel_value mask, bool plain,
                              double scale, const keel_value of[3], keel_value *y);

#endif
