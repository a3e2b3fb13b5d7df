/* Options of files that outlive the call that they were given to, for stages that open files while
 * their data is gone through. */
#ifndef KEEL_DATA_OPTIONS_COPY_H
#define KEEL_DATA_OPTIONS_COPY_H
#include "data/source.h"

typedef struct keel_options_copy {
    keel_dataset_options options; /* `note` is left out: it is for who opens the pipeline */
    void **owned;                 /* [n] what its members point to */
    int n, room;
} keel_options_copy;

/* o NULL: the defaults. */
keel_status keel_options_copy_create(keel_options_copy **out, const keel_dataset_options *o);
void keel_options_copy_destroy(keel_options_copy *c); /* NULL is allowed */

#endif
