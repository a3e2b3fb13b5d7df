/* The page about a type, made from its field table. */
#ifndef KEEL_BASE_TYPE_HELP_H
#define KEEL_BASE_TYPE_HELP_H
#include "base/field.h"
#include "base/text.h"

/* "take: The first elements.", then a line for each argument: key, default, help. */
void keel_type_lines(keel_text *t, const keel_type *type);
/* The same as a text that the caller frees with keel_free. */
keel_status keel_type_help(const keel_type *type, char **out);

#endif
