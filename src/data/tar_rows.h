/* The rows of tar shards: the members of one key, the name up to the first dot of its last part, in
 * the order of their first members. They need not stand together. */
#ifndef KEEL_DATA_TAR_ROWS_H
#define KEEL_DATA_TAR_ROWS_H
#include "data/file_list.h"
#include "io/tar.h"

typedef struct keel_tar_item { /* a member */
    const char *key, *ending;
    uint64_t offset, n_bytes;
    int64_t shard, order;
} keel_tar_item;

typedef struct keel_tar_row {
    const char *key;
    int64_t first; /* its first item */
} keel_tar_row;

typedef struct keel_tar_rows {
    keel_file_list files;
    keel_tar *tar; /* [files.n] */
    keel_tar_item *items;
    int64_t n_item, item_room;
    keel_tar_row *rows; /* [n_row + 1] */
    int64_t n_row, row_room;
} keel_tar_rows;

/* Open all shards of SRC and index their rows. KEEL_EDATA: there are none, or a row has a member
 * twice. The caller closes it, on failure too. */
keel_status keel_tar_rows_open(keel_tar_rows *out, const char *spec);
void keel_tar_rows_close(keel_tar_rows *t);

/* True if an ending is one of "jpg;png". Case does not count. */
bool keel_tar_ending_is(const char *endings, const char *ending);

/* The member of a row with one of these endings; NULL: there is none. */
const keel_tar_item *keel_tar_rows_find(const keel_tar_rows *t, int64_t row, const char *endings);
/* The same, where it must be there: KEEL_EDATA. */
keel_status keel_tar_rows_get(const keel_tar_rows *t, int64_t row, const char *endings,
                              const keel_tar_item **out);

/* Put file, member and byte before the text of a failure; returns s. */
keel_status keel_tar_rows_fail(const keel_tar_rows *t, const keel_tar_item *m, keel_status s);

#endif
