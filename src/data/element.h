/* What flows between stages of a stream: a row, or a batch of rows, in one block of memory that
 * several stages may share. It does not change once it is made. */
#ifndef KEEL_DATA_ELEMENT_H
#define KEEL_DATA_ELEMENT_H
#include "base/account.h"
#include "data/faults.h"

typedef struct keel_element {
    _Atomic int references;
    int n_field;
    keel_account *account;
    size_t n_bytes;
    keel_spot place; /* where it comes from: of a batch, the first row */
    struct keel_element_field {
        void *data;       /* in the field's own dtype */
        keel_shape shape; /* of a batch with the number of rows first */
    } field[];
} keel_element;

/* An element with room for fields of these shapes, whose bytes are not set. KEEL_ESHAPE: a shape
 * overflows; KEEL_ENOMEM, also if the account has no room. The caller releases it. */
keel_status keel_element_create(keel_element **out, keel_account *a, const keel_data_spec *spec,
                                const keel_shape *shape);
/* The same, whose values are 0: for what does not write all of them. */
keel_status keel_element_create_zeroed(keel_element **out, keel_account *a,
                                       const keel_data_spec *spec, const keel_shape *shape);
/* A copy of values, texts included. shape[i], data[i]: of each field. */
keel_status keel_element_copy(keel_element **out, keel_account *a, const keel_data_spec *spec,
                              const void *const *data, const keel_shape *shape);
/* Texts that an element points to become its own: replaces *e, which is released on failure too. */
keel_status keel_element_own_texts(keel_element **e, const keel_data_spec *spec);
keel_element *keel_element_share(keel_element *e);
void keel_element_release(keel_element *e); /* NULL is allowed */

/* The shape of a batch of rows, and of a row of a batch. KEEL_ESHAPE: a batch of field `path` has
 * too many dims. */
keel_status keel_batch_shape(keel_shape *out, const keel_shape *row, int64_t rows,
                             const char *path);
keel_shape keel_row_shape(const keel_shape *batch);

/* The number of rows: the first dim of a batch, else 1. */
int64_t keel_element_rows(const keel_element *e, const keel_data_spec *spec);

/* The bytes of field i. */
size_t keel_element_bytes(const keel_element *e, const keel_data_spec *spec, int i);

/* The bytes of an element of these fields, texts not counted; batches have `rows` of them (0: it is
 * a row). Open dims count as 1. INT64_MAX: more than can be counted. */
int64_t keel_element_size(const keel_data_spec *spec, int64_t rows);

/* The same for the largest element of a dataset. */
int64_t keel_dataset_element_size(const keel_dataset *d);

#endif
