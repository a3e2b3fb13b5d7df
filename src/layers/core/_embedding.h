/* What Embedding and ReversibleEmbedding share: a table, and looking up its rows. */
#ifndef KEEL_LAYERS_CORE_EMBEDDING_H
#define KEEL_LAYERS_CORE_EMBEDDING_H
#include "layers/core/low_rank.h"

typedef struct keel_embedding_args { /* first in the arguments of both */
    int64_t input_dim, output_dim;
    keel_object embeddings_initializer, embeddings_regularizer, embeddings_constraint;
    bool mask_zero;
    keel_low_rank low_rank;
} keel_embedding_args;

#define KEEL_EMBEDDING_FIELDS                                                                      \
    KEEL_INT(keel_embedding_args, input_dim, NULL, 1, 1e15,                                        \
             "rows of the table: the largest id + 1"),                                             \
        KEEL_INT(keel_embedding_args, output_dim, NULL, 1, 1e15, "numbers in a row of the table"), \
        KEEL_OBJECT(keel_embedding_args, embeddings_initializer, "\"random_uniform\"",             \
                    keel_initializer_find, "first values of the table"),                           \
        KEEL_OBJECT(keel_embedding_args, embeddings_regularizer, "null", keel_regularizer_find,    \
                    "of the table"),                                                               \
        KEEL_OBJECT(keel_embedding_args, embeddings_constraint, "null", keel_constraint_find,      \
                    "of the table"),                                                               \
        KEEL_BOOL(keel_embedding_args, mask_zero, "false",                                         \
                  "0 is padding: it does not count in later layers"),                              \
        KEEL_LOW_RANK_FIELDS(keel_embedding_args, low_rank),                                       \
        KEEL_REFUSE("weights", "null", "Keras leaves it out of files"),                            \
        KEEL_IGNORE("quantization_config", "for quantize(), which has not been called"),           \
        KEEL_IGNORE("input_length", "Keras ignores it too")

typedef struct keel_embedding {
    keel_weights table, pair[2]; /* pair: of low_rank */
} keel_embedding;

/* Declares the table. */
keel_status keel_embedding_declare(keel_emit *e, const keel_embedding_args *a, keel_embedding *w);
/* The rows of the table that input 0 asks for, and the mask of places that are not 0. */
keel_status keel_embedding_rows(keel_emit *e, const keel_embedding_args *a,
                                const keel_embedding *w);
/* keel_layer.low_rank and .to_config. */
double keel_embedding_low_rank(const void *args);
keel_status keel_embedding_config(const void *args, json_t *config);

#endif
