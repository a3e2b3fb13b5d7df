/* The files of SRC for formats that spread rows over several: a file, a directory of them, or a
 * pattern: train-*.tfrecord, shard-{000..010}.tar, {train,extra}-*.tar. */
#ifndef KEEL_DATA_SHARDS_H
#define KEEL_DATA_SHARDS_H
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct keel_shards {
    char **path; /* sorted by bytes; of a pattern in braces in its order */
    int64_t count;
    int64_t room;
} keel_shards;

enum { KEEL_SHARDS_OPEN = 256 }; /* files that a dataset leaves open */

/* True if a file name is one of the format's, as "train.tfrecord-00000-of-00010". */
typedef bool (*keel_shards_named)(const char *name);

bool keel_tfrecord_named(const char *name); /* has .tfrec in it */
bool keel_tar_named(const char *name);      /* ends in .tar, .tar.gz or .tgz */

/* True if SRC is a file with such a name, a pattern with one, or a directory that has such files
 * and no folders. */
bool keel_shards_claims(const char *spec, keel_shards_named named);

/* Find the files. KEEL_EIO, KEEL_EDATA: there are none; KEEL_EARG: a pattern of more than 100,000
 * files. The caller frees the list, on failure too. */
keel_status keel_shards_find(keel_shards *out, const char *spec, keel_shards_named named);
void keel_shards_free(keel_shards *s);

#endif
