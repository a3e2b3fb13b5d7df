/* A list of rows in a file, one a line: file, row, stage and reason, with a tab between them. The
 * file is that of the row, or where rows have no file of their own, the name of the data. */
#ifndef KEEL_DATA_QUARANTINE_H
#define KEEL_DATA_QUARANTINE_H
#include "data/source.h"

/* A set of rows, by file and number. */
typedef struct keel_row_set {
    uint64_t *at; /* hashes, 0: free */
    int64_t n, room;
} keel_row_set;

/* True if it was not there. Out of memory, it is forgotten. */
bool keel_row_set_add(keel_row_set *s, const char *file, int64_t row);
bool keel_row_set_has(const keel_row_set *s, const char *file, int64_t row);
void keel_row_set_free(keel_row_set *s);

typedef struct keel_quarantined {
    const char *file, *stage, *reason;
    int64_t row; /* -1: not known */
} keel_quarantined;

/* The name of a row in the list. */
const char *keel_quarantine_file(const keel_data_origin *o, int64_t row);

/* ---- writing ----------------------------------------------------------------------------------
 */

typedef struct keel_quarantine {
    int fd; /* -1: there is no list */
    char *path;
    keel_row_set listed;
    keel_failure failed; /* a line could not be written: the first time */
} keel_quarantine;

/* Open a list to add to; it may be there. KEEL_EIO, KEEL_EFORMAT: it cannot be read or written. */
keel_status keel_quarantine_open(keel_quarantine *out, const char *path);
/* Add a line in one write, unless the row is listed. One thread at a time. */
void keel_quarantine_add(keel_quarantine *q, const keel_quarantined *row);
void keel_quarantine_close(keel_quarantine *q);

/* ---- reading ----------------------------------------------------------------------------------
 */

/* Call `each` for all rows of a list; it may return a failure. KEEL_EFORMAT names path and line. */
keel_status keel_quarantine_parse(const char *text, size_t n_bytes, const char *path,
                                  keel_status (*each)(void *context, const char *file, int64_t row),
                                  void *context);

/* What a run is to leave out. In a directory rows are files, which are left out by their names, so
 * that others may come and go; of any other data rows are left out by number. */
typedef struct keel_skip_list {
    keel_row_set rows, files;
} keel_skip_list;

keel_status keel_skip_list_load(keel_skip_list *out, const char *path);
void keel_skip_list_free(keel_skip_list *l);
/* row -1: the file is listed. */
bool keel_skip_list_has(const keel_skip_list *l, const char *file, int64_t row);
void keel_skip_list_note(const keel_skip_list *l, const char *path, const char *name, int64_t out,
                         int64_t of, char *text, size_t size);

/* Leave out the rows of the list at `path` from the dataset of a file; those that stay keep their
 * numbers in messages and lists. KEEL_EUNSUP: it is a stream, or a part of the data; KEEL_EDATA: no
 * row is left. */
keel_status keel_skip_list_apply(keel_dataset *d, const char *path);

#endif
