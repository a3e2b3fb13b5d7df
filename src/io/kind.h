/* Recognise, by its first bytes, a file that was given as a model and is none, so that the error
 * can say what it is. */
#ifndef KEEL_IO_KIND_H
#define KEEL_IO_KIND_H
#include <stddef.h>

enum { KEEL_KIND_BYTES = 1 << 16 }; /* bytes that are looked at, at most */

/* What the file is and what to do, as a static text for a message; NULL: not recognised. `path` may
 * be a folder. */
const char *keel_kind_of_file(const char *path);
/* The same from the first bytes of a file alone. */
const char *keel_kind_of_bytes(const void *begin, size_t n_bytes);

#endif
