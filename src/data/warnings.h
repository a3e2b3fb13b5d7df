/* What decoders repair and do not refuse, counted by file: said once at the end of a run. */
#ifndef KEEL_DATA_WARNINGS_H
#define KEEL_DATA_WARNINGS_H
#include "base/scratch.h"
#include <stdint.h>

/* For a decoder: the file `what` was read, but not without doubt. Counts for the dataset whose row
 * the thread of this scratch is reading; where nobody reads a row, for none. */
void keel_warn(const keel_scratch *scratch, const char *what, const char *text);

/* Of one origin; NULL: none. */
typedef struct keel_warnings keel_warnings;
void keel_warnings_destroy(keel_warnings *w);

#endif
