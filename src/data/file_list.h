/* SRC of the command line that stands for one file or several of a kind: a path, a pattern such as
 * "day-*.csv", or a folder that has such files. */
#ifndef KEEL_DATA_FILE_LIST_H
#define KEEL_DATA_FILE_LIST_H
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_file_list {
    char **path; /* [n]; owned, sorted by bytes */
    int64_t n, room;
} keel_file_list;

/* True if SRC ends as one of the endings (a list that ends with NULL), or is a folder that has such
 * files and neither folders nor images. */
bool keel_file_list_claims(const char *spec, const char *const *endings);

/* True if a folder has files of text (tables, JSON lines, .txt) and neither folders nor images. */
bool keel_file_list_is_texts(const char *folder);

/* Find the files. A path that exists is taken as it is. KEEL_EIO: a pattern or a folder has none;
 * a single path is listed though it may not exist: reading it will say so. */
keel_status keel_file_list_find(keel_file_list *out, const char *spec, const char *const *endings);
void keel_file_list_free(keel_file_list *l);

#endif
