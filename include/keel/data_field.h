/* A row is a list of named fields. Included by <keel/dataset.h>. */
#ifndef KEEL_DATA_FIELD_H
#define KEEL_DATA_FIELD_H
#include <keel/tensor.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An element of a field of texts (KEEL_STRING): UTF-8, not zero-terminated. The bytes live as long
 * as the dataset. */
typedef struct keel_string {
    const char *data;
    int64_t n_bytes;
} keel_string;

enum { KEEL_FIELDS_MAX = 64 }; /* most fields of a row */

typedef enum keel_data_role {
    KEEL_ROLE_INPUT,
    KEEL_ROLE_TARGET,
    KEEL_ROLE_WEIGHT /* numbers that losses are multiplied by, one for each row or each of its
                        loss elements */
} keel_data_role;

/* One field of a row. */
typedef struct keel_data_field {
    const char *path; /* its name, or its path in a structure: "x", "left", "inputs/0" */
    keel_dtype dtype; /* as stored */
    keel_shape shape; /* of one row, without the batch; KEEL_DIM_OPEN: rows differ in this dim */
    keel_data_role role;
    const char *target; /* of a weight: the path of its target; NULL: all targets */
} keel_data_field;

#ifdef __cplusplus
}
#endif
#endif
