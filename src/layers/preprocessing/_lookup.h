/* What the layers that look up words or numbers share: their arguments, the table made from a
 * vocabulary, and the host op. Keras: IndexLookup.
 *
 * The order of indices: the mask token, if there is one and the output is indices; the buckets for
 * entries that are not in the vocabulary; the vocabulary. */
#ifndef KEEL_LAYERS_PREPROCESSING_LOOKUP_H
#define KEEL_LAYERS_PREPROCESSING_LOOKUP_H
#include "layers/layer.h"
#include "layers/preprocessing/_categories.h"

typedef struct keel_lookup keel_lookup;

typedef struct keel_lookup_args {
    bool texts; /* it looks up texts, else integers; set by the layer's `ready` */
    int64_t max_tokens, num_oov_indices;
    char *mask_token, *oov_token;     /* of texts */
    int64_t mask_number, oov_number;  /* of numbers; KEEL_INT_NULL: none */
    json_t *vocabulary, *idf_weights; /* as in the config; NULL: none */
    bool invert, pad_to_max_tokens, sparse;
    int output_mode; /* keel_category_mode */
    int oov_method;  /* 0: floormod, 1: farmhash */
    json_t *salt;
    int64_t vocabulary_size; /* as in a file; KEEL_INT_NULL: not given */
    keel_lookup *table;      /* NULL: no vocabulary yet */
} keel_lookup_args;

/* The fields that all these layers have; args are keel_lookup_args. */
#define KEEL_LOOKUP_OUTPUT_FIELDS                                                                  \
    KEEL_INT(keel_lookup_args, max_tokens, "null", 2, 1e9,                                         \
             "most entries, special ones among them"),                                             \
        KEEL_LIST(keel_lookup_args, vocabulary, "null",                                            \
                  "what is looked up, in the order of its indices"),                               \
        KEEL_LIST(keel_lookup_args, idf_weights, "null",                                           \
                  "tf_idf: the weight of each entry of the vocabulary"),                           \
        KEEL_CHOICE(keel_lookup_args, output_mode, "\"int\"",                                      \
                    "int|one_hot|multi_hot|count|tf_idf",                                          \
                    "what comes out: indices, or a number for each index"),                        \
        KEEL_BOOL(keel_lookup_args, pad_to_max_tokens, "false",                                    \
                  "a number for each of max_tokens, however large the vocabulary is"),             \
        KEEL_BOOL(keel_lookup_args, sparse, "false", KEEL_SPARSE_HELP),                            \
        KEEL_INT(keel_lookup_args, vocabulary_size, "null", 0, 1e9,                                \
                 "written by Keras: entries, special ones among them")
#define KEEL_LOOKUP_OOV_FIELDS                                                                     \
    KEEL_INT(keel_lookup_args, num_oov_indices, "1", 0, 1e9,                                       \
             "indices for what is not in the vocabulary; 0: it is an error"),                      \
        KEEL_CHOICE(keel_lookup_args, oov_method, "\"floormod\"", "floormod|farmhash",             \
                    "how numbers that are not in the vocabulary get one of several indices"),      \
        KEEL_LIST(keel_lookup_args, salt, "null", "two whole numbers: the key of that hash")

/* Keras 3.15 compares the bytes of texts and those of the vocabulary, whatever it is. */
#define KEEL_ENCODING_HELP "of texts: kept; bytes are compared as they are, as in Keras"

/* Checks what the field table cannot check, and makes args->table from a vocabulary in the config.
 * Errors name `layer`; a->texts must be set. */
keel_status keel_lookup_ready(keel_lookup_args *a, const char *layer);

/* The functions of a layer that only looks up; args are keel_lookup_args. */
void keel_lookup_release(void *args);
bool keel_lookup_needs_asset(const void *args);
keel_status keel_lookup_read_asset(void *args, const char *text, size_t n_bytes);
bool keel_lookup_asset(const void *args, const char **text, size_t *n_bytes);
float *keel_lookup_idf(const void *args, int64_t *n);
keel_status keel_lookup_emit(keel_emit *e);

/* The table of a layer that looks up, but for `emit`. */
#define KEEL_LOOKUP_LAYER                                                                          \
    .min_inputs = 1, .max_inputs = 1, .reads_rows = true, .uncast = true,                          \
    .asset_name = "vocabulary.txt", .needs_asset = keel_lookup_needs_asset,                        \
    .read_asset = keel_lookup_read_asset, .asset = keel_lookup_asset, .idf = keel_lookup_idf

/* The spec of the output for rows of the shape `in`. */
keel_status keel_lookup_spec(const keel_lookup_args *a, const keel_shape *in, keel_dtype real,
                             keel_spec *out);
keel_status keel_lookup_missing(void); /* KEEL_EARG: there is no vocabulary */

/* The parts of a host op, once the row is cleared (keel_categories_begin): put the index of each
 * element i of it, end it. The bytes of a number are its int64_t. KEEL_EDATA: there is no index for
 * it. */
enum { KEEL_LOOKUP_SKIPPED = -1 }; /* instead of an index: a masked entry, which is left out */
keel_status keel_lookup_index(const keel_lookup_args *a, const keel_string *s, int64_t *index);
void keel_lookup_put(const keel_lookup_args *a, int64_t index, int64_t i, const keel_tensor *out);
void keel_lookup_end(const keel_lookup_args *a, const keel_tensor *out);

#endif
