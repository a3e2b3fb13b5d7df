/* SRC of the command line: one path, or two separated by a comma. */
#ifndef KEEL_DATA_SPEC_H
#define KEEL_DATA_SPEC_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

bool keel_spec_ends(const char *spec, size_t length, const char *ending); /* ignores case */

/* The first comma between two non-empty parts; NULL: none. */
const char *keel_spec_comma(const char *spec);

/* Copy both parts, which the caller frees with keel_free; *second is NULL without a comma. */
keel_status keel_spec_split(const char *spec, char **first, char **second);

#endif
