/* What keel data shows, as one HTML page that needs no other file. */
#ifndef KEEL_CLI_PAGE_H
#define KEEL_CLI_PAGE_H
#include "samples.h"

/* A dataset of the chain, from the source on. */
typedef struct keel_page_stage {
    const char *name;
    double rate; /* rows a second up to it; below 0: not measured */
    int others;  /* datasets that it is made of, besides the one before it */
} keel_page_stage;

typedef struct keel_page {
    const char *name, *cardinality, *note, *report; /* note, report: NULL or "": none */
    const keel_samples *samples;
    const keel_page_stage *stage;
    int n_stage;
    const char *left_out_by;      /* the stage that leaves out the elements of `failures` */
    const keel_samples *failures; /* NULL: nothing is passed over */
} keel_page;

/* Write the page; false: writing failed, or out of memory. Names and texts of the data are escaped,
 * and the page forbids scripts and everything from elsewhere. */
bool keel_page_write(FILE *f, const void *page);

const char *keel_role_name(keel_data_role role);
const char *keel_dtype_name(keel_dtype t);
const char *keel_shape_text(char *out, size_t size, const keel_shape *s); /* "(28, None, 1)" */

#endif
