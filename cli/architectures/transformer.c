/* One block of attention over the tokens of a text, the network of Keras's example
 * text_classification_with_transformer. */
#include "architecture.h"

enum { WIDTH = 32, HEADS = 2 };
static const double DROPOUT = 0.1, EPSILON = 1e-6;

static keel_symbol build(keel_net *n, keel_symbol x)
{
    x = keel_net_token_and_position(n, x, WIDTH);
    keel_symbol y =
        keel_net_join(n, "MultiHeadAttention",
                      KEEL_ARGS(KEEL_ARG_STR("name", "attention"), KEEL_ARG_INT("num_heads", HEADS),
                                KEEL_ARG_INT("key_dim", WIDTH)),
                      x, x);
    y = keel_net_dropout(n, y, "attention", "_dropout", DROPOUT);
    x = keel_net_layer_norm(n, keel_net_add(n, "attention_add", x, y), "attention", "_norm",
                            EPSILON);
    y = keel_net_dense(n, x, "block", "_dense_1", WIDTH, "relu");
    y = keel_net_dense(n, y, "block", "_dense_2", WIDTH, NULL);
    y = keel_net_dropout(n, y, "block", "_dropout", DROPOUT);
    x = keel_net_layer_norm(n, keel_net_add(n, "block_add", x, y), "block", "_norm", EPSILON);
    x = keel_net_call(n, "GlobalAveragePooling1D", KEEL_ARGS(KEEL_ARG_STR("name", "avg_pool")), x);
    x = keel_net_dropout(n, x, "avg_pool", "_dropout", DROPOUT);
    x = keel_net_dense(n, x, "dense", "", 20, "relu");
    return keel_net_dropout(n, x, "dense", "_dropout", DROPOUT);
}

const keel_architecture keel_architecture_transformer = {
    .name = "transformer",
    .summary = "a block of attention over embedded tokens, as in Keras's text classification",
    .takes = "tokens, as 200",
    .rank = 1,
    .vocabulary = 20000,
    .head = "predictions",
    .build = build,
};
