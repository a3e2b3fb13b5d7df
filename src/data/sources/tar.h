/* Rows of tar shards, and what is learned of them when they are opened. */
#ifndef KEEL_DATA_SOURCES_TAR_H
#define KEEL_DATA_SOURCES_TAR_H
#include "data/largest.h"
#include "data/records.h"
#include "data/tar_rows.h"
#include "io/npy.h"

enum {
    KEEL_TAR_NUMBER = 64,          /* bytes of a whole number at most */
    KEEL_TAR_LOOK = 4 << 10,       /* where the head of a file is looked for; */
    KEEL_TAR_LOOK_MORE = 256 << 10 /* and if it is not there */
};

typedef struct keel_archive {
    keel_tar_rows t;
    keel_record_fields fields;
    keel_photo photo;
    keel_largest *largest; /* what reading a row takes */
    bool known;            /* of all rows */
} keel_archive;

/* The first `n_most` bytes of a member, or all, in scratch buffer 0 or in memory. */
keel_status keel_archive_fetch(const keel_archive *a, const keel_tar_item *m, uint64_t n_most,
                               keel_scratch *scratch, const unsigned char **data, size_t *n);
/* All of it. KEEL_EFORMAT: it has more bytes than that. */
keel_status keel_archive_fetch_whole(const keel_archive *a, const keel_tar_item *m, uint64_t limit,
                                     keel_scratch *scratch, const unsigned char **data, size_t *n);

/* A whole number between spaces. */
keel_status keel_archive_number(const unsigned char *data, size_t n, int64_t *out);
/* The header of an array of numbers that may be a row of the field; NULL: of any. */
keel_status keel_archive_array(const keel_record_field *f, const unsigned char *data, size_t n,
                               keel_npy_header *h);

/* Note what reading each row takes. All members of a row are counted, though they share the buffer
 * for a file. Those that cannot be read fail when their row is read. */
keel_status keel_archive_note_rows(keel_archive *a, keel_scratch *scratch);

/* Choose the parts that are fields, from the first row. */
keel_status keel_archive_choose(keel_archive *a, const keel_dataset_options *o);
/* Learn what they are, and unless the data is unchecked what reading a row takes. */
keel_status keel_archive_learn(keel_archive *a, const keel_dataset_options *o,
                               keel_scratch *scratch, const char *what);
/* A text; of a label without the spaces around it, as a line end. */
keel_status keel_archive_scan_text(const keel_archive *a, const keel_record_field *f,
                                   const keel_tar_item *m, keel_record_scan *s,
                                   keel_scratch *scratch);

#endif
