/* Two bidirectional LSTMs over the tokens of a text, the network of Keras's example
 * bidirectional_lstm_imdb. */
#include "architecture.h"
#include <stdio.h>

enum { WIDTH = 128, UNITS = 64 };

static keel_symbol both_ways(keel_net *n, bool sequences, keel_symbol x)
{
    char way[2][160];
    for (int back = 0; back < 2; back++)
        snprintf(way[back], sizeof way[back],
                 "{\"class_name\": \"LSTM\", \"config\": {\"name\": \"%s_lstm\", \"units\": %d,"
                 " \"return_sequences\": %s, \"go_backwards\": %s}}",
                 back ? "backward" : "forward", UNITS, sequences ? "true" : "false",
                 back ? "true" : "false");
    return keel_net_call(
        n, "Bidirectional",
        KEEL_ARGS(KEEL_ARG_JSON("layer", way[0]), KEEL_ARG_JSON("backward_layer", way[1])), x);
}

static keel_symbol build(keel_net *n, keel_symbol x)
{
    x = keel_net_call(
        n, "Embedding",
        KEEL_ARGS(KEEL_ARG_INT("input_dim", n->vocabulary), KEEL_ARG_INT("output_dim", WIDTH)), x);
    return both_ways(n, false, both_ways(n, true, x));
}

const keel_architecture keel_architecture_lstm = {
    .name = "lstm",
    .summary =
        "two bidirectional LSTMs of 64 units over embedded tokens, as in Keras's IMDB example",
    .takes = "tokens, as 200",
    .rank = 1,
    .vocabulary = 20000,
    .head = "predictions",
    .build = build,
};
