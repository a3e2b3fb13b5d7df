/* The index of a text in a vocabulary, looked up when rows are read: texts never reach a kernel. */
#include "layers/preprocessing/_lookup.h"

typedef struct args_t {
    keel_lookup_args lookup; /* first: the functions of lookups take these args */
    char *encoding;
} args_t;

static const keel_field fields[] = {
    KEEL_LOOKUP_OUTPUT_FIELDS,
    KEEL_LOOKUP_OOV_FIELDS,
    KEEL_STRING(keel_lookup_args, mask_token, "null",
                "stands for nothing: index 0, or no number where numbers come out"),
    KEEL_STRING(keel_lookup_args, oov_token, "\"[UNK]\"",
                "how the vocabulary writes what is not in it"),
    KEEL_REFUSE("invert", "false", "its texts cannot be trained on: no layer takes them"),
    KEEL_STRING(args_t, encoding, "\"utf-8\"", KEEL_ENCODING_HELP),
    { 0 },
};

static keel_status ready(void *args)
{
    ((keel_lookup_args *)args)->texts = true;
    return keel_lookup_ready(args, "StringLookup");
}

const keel_layer keel_layer_string_lookup = {
    .type = { KEEL_LAYER_HEAD("StringLookup", "The index of a text in a vocabulary."),
              .args_size = sizeof(args_t), .fields = fields, .ready = ready,
              .release = keel_lookup_release },
    KEEL_LOOKUP_LAYER,
    .emit = keel_lookup_emit,
};
