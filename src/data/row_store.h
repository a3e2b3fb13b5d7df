/* Elements in a file of rows (io/row_file.h): the stages cache and snapshot write and read them. */
#ifndef KEEL_DATA_ROW_STORE_H
#define KEEL_DATA_ROW_STORE_H
#include "data/element.h"
#include "data/stage.h"
#include "io/row_file.h"

enum { KEEL_ROW_DIMS = KEEL_FIELDS_MAX * KEEL_RANK_MAX + 1 };

/* How many numbers the shapes of an element need beside the spec: the open dims, and the rows of a
 * batch. */
int keel_row_store_dims(const keel_data_spec *spec);

/* The bytes of an element, in scratch buffer 0, and its dims. */
keel_status keel_row_store_encode(const keel_element *e, const keel_data_spec *spec,
                                  keel_scratch *scratch, const void **data, size_t *n_bytes,
                                  uint64_t dims[KEEL_ROW_DIMS]);

/* Element i of a file with such elements. KEEL_EFORMAT: it does not fit the spec. Thread-safe. */
keel_status keel_row_store_read(keel_element **out, const keel_row_file *f,
                                const keel_data_spec *spec, int64_t i, keel_account *a,
                                keel_scratch *scratch);

/* The first dim of open field `field` of row i. */
int64_t keel_row_store_length(const keel_row_file *f, const keel_data_spec *spec, int field,
                              int64_t i);

/* What a file must agree in with the pipeline before it, as JSON: fields, stages with their
 * arguments, and the sources by their rows and, where they are one file, its size and time. NULL:
 * out of memory. The caller frees it with free. */
char *keel_row_store_head(const keel_dataset *parent, const keel_data_spec *spec);

/* KEEL_EDATA: the file was made by another pipeline; the text says what differs. */
keel_status keel_row_store_check(const keel_row_file *f, const keel_dataset *parent,
                                 const keel_data_spec *spec);

#endif
