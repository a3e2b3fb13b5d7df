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

/* The spec of the output for rows of the shape `in`. */
keel_status keel_categories_spec(int mode, int64_t depth, const keel_shape *in, keel_dtype real,
                                 keel_spec *out);

/* In a host op: clear the row, then put the index of each of its elements i. If the output is not
 * indices, an index outside [0, depth) is left out. */
void keel_categories_begin(const keel_tensor *out);
void keel_categories_put(int mode, int64_t depth, int64_t index, int64_t i, const keel_tensor *out);

/* The to_config of a layer whose dtype in Keras is the type of its indices. */
keel_status keel_categories_dtype(int mode, json_t *config);

/* Element i of a row of numbers as an integer, without its fraction; and as it is. */
int64_t keel_whole_number_at(const keel_tensor *in, int64_t i);
double keel_number_at(const keel_tensor *in, int64_t i);

#endif
