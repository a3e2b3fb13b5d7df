/* What the command line calls SRC: one path, or two with a comma between them. */
#ifndef KEEL_DATA_SPEC_H
#define KEEL_DATA_SPEC_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

bool keel_spec_ends(const char *spec, size_t length, const char *ending); /* case does not matter */

/* Where the comma of a pair is: the first that divides two non-empty parts; NULL: there is none. */
const char *keel_spec_comma(const char *spec);

/* Both parts (keel_free); *second is NULL where there is no comma. */
keel_status keel_spec_split(const char *spec, char **first, char **second);

#endif
