/* What layers with categories as output share: the output is indices, or `depth` numbers that say
 * whether, or how often, each index occurs. Keras: encode_categorical_inputs. */
#ifndef KEEL_LAYERS_PREPROCESSING_CATEGORIES_H
#define KEEL_LAYERS_PREPROCESSING_CATEGORIES_H
#include "keel/dataset.h"
#include "layers/layer.h"

typedef enum keel_category_mode {
    KEEL_CATEGORY_INT,
    KEEL_CATEGORY_ONE_HOT,
    KEEL_CATEGORY_MULTI_HOT,
    KEEL_CATEGORY_COUNT,
    KEEL_CATEGORY_TF_IDF /* of look-ups */
} keel_category_mode;

/* Keras then holds the numbers of a batch without its zeros, and layers that take them compute the
 * same; Keel holds all of them. */
#define KEEL_SPARSE_HELP "as a sparse tensor, of the same numbers; not with output_mode 'int'"
keel_status keel_categories_sparse(bool sparse, int mode); /* KEEL_EARG: not with indices */

/* The index of element i of a row, or of the whole row. */
typedef int64_t (*keel_index_of)(const void *args, const keel_tensor *in, int64_t i);

/* The first member of the arguments of a layer that makes such an output by a function; `ready`
 * sets that, and how many indices there are. */
typedef struct keel_category_args {
    int output_mode;
    bool sparse; /* how Keras holds the numbers; they are the same */
    int64_t depth;
    keel_index_of index;
} keel_category_args;
#define KEEL_CATEGORY_FIELDS(modes, help_)                                                         \
    KEEL_CHOICE(keel_category_args, output_mode, "\"int\"", modes, help_),                         \
        KEEL_BOOL(keel_category_args, sparse, "false", KEEL_SPARSE_HELP)
/* Their keel_layer.to_config: in Keras their dtype is that of indices; and their emit. */
keel_status keel_category_config(const void *args, json_t *config);
keel_status keel_category_emit(keel_emit *e);
/* Of a layer with one input: whether a second one is the argument count_weights of its call, of
 * which only layers that count have use. */
keel_status keel_category_weights(const keel_emit *e, bool counts);

/* The spec of the output for rows of the shape `in`. */
keel_status keel_categories_spec(int mode, int64_t depth, const keel_shape *in, keel_dtype real,
                                 keel_spec *out);

/* In a host op: clear the row, then put the index of each of its elements i. If the output is not
 * indices, an index outside [0, depth) is left out. */
void keel_categories_begin(const keel_tensor *out);
void keel_categories_put(int mode, int64_t depth, int64_t index, int64_t i, const keel_tensor *out);
/* Of counts: add a weight to that of an index in [0, depth). */
void keel_categories_add(int64_t index, double weight, const keel_tensor *out);

/* Element i of a row of numbers as an integer, without its fraction; and as it is. */
int64_t keel_whole_number_at(const keel_tensor *in, int64_t i);
double keel_number_at(const keel_tensor *in, int64_t i);
/* The text that is hashed: element i of texts, or the digits of a number. */
keel_string keel_text_at(const keel_tensor *in, int64_t i, char digits[32]);
/* TensorFlow's hash of a text: by a key of two numbers, or of one twice; NULL: without. */
uint64_t keel_text_hash(const json_t *salt, const keel_string *s);

#endif
