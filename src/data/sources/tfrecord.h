/* Rows that are records of TFRecord files, and what is learned of them when they are opened. */
#ifndef KEEL_DATA_SOURCES_TFRECORD_H
#define KEEL_DATA_SOURCES_TFRECORD_H
#include "data/feature_rows.h"
#include "data/file_list.h"
#include "data/largest.h"
#include "io/tfrecord.h"

typedef struct keel_examples {
    keel_file_list files;
    keel_tfrecord *file; /* [files.n] */
    int64_t *first;      /* [files.n + 1] the first row of each file */
    keel_record_fields fields;
    const char *feature[KEEL_FIELDS_MAX];
    keel_photo photo;
    keel_largest *largest; /* what reading a row takes, with numbers that are converted */
    keel_largest *resized; /* while rows are scanned: the same if images are resized */
    bool known;            /* of all rows */
} keel_examples;

static inline int64_t keel_examples_rows(const keel_examples *r)
{
    return r->first[r->files.n];
}

/* The file of a row, by bisection. */
int64_t keel_examples_file(const keel_examples *r, int64_t row);
/* Put file, record and byte before the text of a failure; returns s. */
keel_status keel_examples_fail(const keel_examples *r, int64_t row, keel_status s);

/* The data of a row, in scratch buffer 0 or in memory. */
keel_status keel_examples_fetch(const keel_examples *r, int64_t row, keel_scratch *scratch,
                                const unsigned char **data, size_t *n);
/* The features of all fields of a row. */
keel_status keel_examples_find(const keel_examples *r, int64_t row, keel_scratch *scratch,
                               keel_feature *out);

/* Note what reading a row takes, before it is known whether images are resized. */
void keel_examples_note_scanned(keel_examples *r, int64_t row, const keel_feature *v);
/* Without a scan: records of numbers differ in their own length alone; what the images of others
 * take is not known before they are read. */
void keel_examples_note_unscanned(keel_examples *r);

/* Choose the features that are fields, from the first record. */
keel_status keel_examples_choose(keel_examples *r, const keel_dataset_options *o);
/* Learn what they are, and what reading a row takes. n_bytes: of all files; what: their name. */
keel_status keel_examples_learn(keel_examples *r, const keel_dataset_options *o, int64_t n_bytes,
                                keel_scratch *scratch, const char *what);
/* Note what a row has of a field, which is no image. */
keel_status keel_examples_scan_value(const keel_record_field *f, keel_record_scan *s,
                                     const keel_feature *v, keel_scratch *scratch);

#endif
