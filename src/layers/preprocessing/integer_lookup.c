/* The index of a whole number in a vocabulary, or the other way round, where rows are read. */
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
    KEEL_REFUSE("vocabulary_dtype", "\"int64\"", "of numbers"),
    { 0 },
};

static keel_status ready(void *args)
{
    return keel_lookup_ready(args, false, "IntegerLookup");
}

static void release(void *args)
{
    keel_lookup_release(args);
}

static bool needs_asset(const void *args)
{
    return !((const keel_lookup_args *)args)->vocabulary;
}

static keel_status read_asset(void *args, const char *text, size_t n_bytes)
{
    return keel_lookup_read_asset(args, false, text, n_bytes);
}

static bool asset(const void *args, const char **text, size_t *n_bytes)
{
    return keel_lookup_asset(args, text, n_bytes);
}

static float *idf(const void *args, int64_t *n)
{
    return keel_lookup_idf(args, n);
}

static keel_status emit(keel_emit *e)
{
    return keel_lookup_emit(e, false);
}

const keel_layer keel_layer_integer_lookup = {
    .type = { .name = "IntegerLookup",
              .module = "keras.layers",
              .help = "The index of a whole number in a vocabulary.",
              .args_size = sizeof(keel_lookup_args),
              .fields = fields,
              .ready = ready,
              .release = release },
    .min_inputs = 1,
    .max_inputs = 1,
    .reads_rows = true,
    .uncast = true,
    .emit = emit,
    .asset_name = "vocabulary.txt",
    .needs_asset = needs_asset,
    .read_asset = read_asset,
    .asset = asset,
    .idf = idf,
};
