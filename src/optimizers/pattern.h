/* Regular expressions that Keras's optimizers take to choose weights by their names. */
#ifndef KEEL_OPTIMIZERS_PATTERN_H
#define KEEL_OPTIMIZERS_PATTERN_H
#include "base/error.h"
#include <stdbool.h>

/* Whether the expression is found in the name, or is like all of it (whole). Errors begin with
 * `what`. KEEL_EARG: it is no expression; KEEL_EUNSUP: Python may read it otherwise than Keel. */
keel_status keel_pattern_finds(const char *what, const char *pattern, const char *name, bool whole,
                               bool *out);

#endif
