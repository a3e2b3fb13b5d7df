/* The index of an integer in a vocabulary, or the reverse, looked up when rows are read. */
#include "layers/preprocessing/_lookup.h"

static const keel_field fields[] = {
    KEEL_LOOKUP_OUTPUT_FIELDS,
    KEEL_LOOKUP_OOV_FIELDS,
    { .key = "mask_token",
      .kind = KEEL_FIELD_INT,
      .offset = offsetof(keel_lookup_args, mask_number),
      .dflt = "null",
      .help = "stands for nothing: index 0, or no number where numbers come out" },
    { .key = "oov_token",
      .kind = KEEL_FIELD_INT,
      .offset = offsetof(keel_lookup_args, oov_number),
      .dflt = "-1",
      .help = "how the vocabulary writes what is not in it" },
    KEEL_BOOL(keel_lookup_args, invert, "false", "from indices to entries of the vocabulary"),
    KEEL_REFUSE("vocabulary_dtype", "\"int64\"", "Keras takes no other"),
    { 0 },
};

static keel_status ready(void *args)
{
    ((keel_lookup_args *)args)->texts = false;
    return keel_lookup_ready(args, "IntegerLookup");
}

const keel_layer keel_layer_integer_lookup = {
    .type = { KEEL_LAYER_HEAD("IntegerLookup", "The index of a whole number in a vocabulary."),
              .args_size = sizeof(keel_lookup_args), .fields = fields, .ready = ready,
              .release = keel_lookup_release },
    KEEL_LOOKUP_LAYER,
    .emit = keel_lookup_emit,
};
