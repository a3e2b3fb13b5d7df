/* GPT for texts of characters: Radford et al. 2019 (GPT-2), in the size that is usual for a corpus
 * of a megabyte. Blocks of causal attention and a Dense layer, each after a LayerNormalization and
 * beside a shortcut. The last layer gives the next token at each place. */
#include "architecture.h"
#include <stdio.h>

enum { BLOCKS = 6, WIDTH = 384, HEADS = 6 };
static const double EPSILON = 1e-5;

static keel_symbol block(keel_net *n, keel_symbol x, const char *name)
{
    char attention[48], add[48];
    snprintf(attention, sizeof attention, "%s_attention", name);
    snprintf(add, sizeof add, "%s_attention_add", name);
    keel_symbol y = keel_net_layer_norm(n, x, name, "_attention_norm", EPSILON);
    y = keel_net_call_with(
        n, "MultiHeadAttention",
        KEEL_ARGS(KEEL_ARG_STR("name", attention), KEEL_ARG_INT("num_heads", HEADS),
                  KEEL_ARG_INT("key_dim", WIDTH / HEADS), KEEL_ARG_FLOAT("dropout", n->dropout)),
        KEEL_ARGS(KEEL_ARG_BOOL("use_causal_mask", true)), (const keel_symbol[]){ y, y }, 2);
    y = keel_net_dropout(n, y, name, "_attention_dropout", n->dropout);
    x = keel_net_add(n, add, x, y);
    snprintf(add, sizeof add, "%s_dense_add", name);
    y = keel_net_layer_norm(n, x, name, "_dense_norm", EPSILON);
    y = keel_net_dense(n, y, name, "_dense_1", 4 * WIDTH, "gelu");
    y = keel_net_dense(n, y, name, "_dense_2", WIDTH, NULL);
    y = keel_net_dropout(n, y, name, "_dense_dropout", n->dropout);
    return keel_net_add(n, add, x, y);
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    char name[32];
    x = keel_net_token_and_position(n, x, WIDTH);
    x = keel_net_dropout(n, x, "embedding", "_dropout", n->dropout);
    for (int i = 1; i <= BLOCKS; i++) {
        snprintf(name, sizeof name, "block%d", i);
        x = block(n, x, name);
    }
    return keel_net_layer_norm(n, x, "last", "_norm", EPSILON);
}

const keel_architecture keel_architecture_gpt = {
    .name = "gpt",
    .summary =
        "GPT: 6 blocks of causal attention, width 384, 6 heads; the next token at each place",
    .takes = "tokens, as 256",
    .rank = 1,
    .vocabulary = 65,
    .head = "predictions",
    .build = build,
};
