/* SRC of the command line that stands for one file or several of a kind: a path, a pattern such as
 * "day-*.csv", "shard-{000..010}.tar" or "{train,extra}-*.tar", or a folder that has such files. */
#ifndef KEEL_DATA_FILE_LIST_H
#define KEEL_DATA_FILE_LIST_H
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_file_list {
    char **path; /* [n]; owned, sorted by bytes; of a pattern in braces in its order */
    int64_t n, room;
} keel_file_list;

enum { KEEL_FILES_OPEN = 256 }; /* files that a dataset leaves open */

/* Endings of names, a list that ends with NULL; after a '*': what is anywhere in a name. */
extern const char *const keel_tfrecord_endings[], *const keel_tar_endings[];
extern const char *const keel_csv_endings[], *const keel_jsonl_endings[];

/* True if SRC ends as one of the endings, or is a folder that has such files and neither folders
 * nor images. */
bool keel_file_list_claims(const char *spec, const char *const *endings);

/* The same for files that hold whole rows; there may be images beside them. */
bool keel_file_list_claims_shards(const char *spec, const char *const *endings);

/* True if a folder has files of text (tables, JSON lines, .txt) and neither folders nor images. */
bool keel_file_list_is_texts(const char *folder);

/* Find the files. A path that exists is taken as it is. KEEL_EIO: a pattern or a folder has none;
 * a single path is listed though it may not exist: reading it will say so. KEEL_EARG: too many. */
keel_status keel_file_list_find(keel_file_list *out, const char *spec, const char *const *endings);
void keel_file_list_free(keel_file_list *l);

#endif
