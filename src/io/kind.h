/* What a file is that was given in place of another, told by its first bytes. */
#ifndef KEEL_IO_KIND_H
#define KEEL_IO_KIND_H
#include <stddef.h>

enum { KEEL_KIND_BYTES = 1 << 16 }; /* as many as are looked at, at most */

/* Of a file that is no model: what it is and what to do, for a message; NULL: not known. The text
 * is static. `path` may be a folder. */
const char *keel_kind_of_file(const char *path);
/* The same of the first bytes of a file, where there is no more than that to say. */
const char *keel_kind_of_bytes(const void *begin, size_t n_bytes);

#endif
