/* Files of text, plain or gzipped: read whole, or line by line with a bounded line.
 *
 * A gzipped text may expand to a thousand times its size. Beyond 16 MiB it may be at most 200 times
 * as long as its file, so a small file cannot fill the memory. */
#ifndef KEEL_IO_TEXT_FILE_H
#define KEEL_IO_TEXT_FILE_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

enum { KEEL_TEXT_PAD = 64 };            /* zero bytes behind a whole text, for readers of blocks */
enum { KEEL_LINE_MAX = 64 << 20 };      /* bytes of the longest line */
#define KEEL_TEXT_MAX ((size_t)1 << 34) /* bytes of the longest text that is read whole */

/* Read a whole text of at most KEEL_TEXT_MAX bytes; the caller frees *text with keel_free.
 * KEEL_TEXT_PAD zero bytes follow it. KEEL_EIO: as keel_file_open; KEEL_EFORMAT: too long, damaged,
 * or a byte of it is zero. A mark at the begin that says UTF-8 is left out; UTF-16 is refused. */
keel_status keel_text_file_read(const char *path, char **text, size_t *n_bytes);

/* The lines of a file, without their ends (LF or CR LF). The last one may lack its end. */
typedef struct keel_lines keel_lines;

/* `path` and a text in memory must outlive the lines. */
keel_status keel_lines_open(keel_lines **out, const char *path);
keel_status keel_lines_open_memory(keel_lines **out, const char *text, size_t n_bytes,
                                   const char *what);
/* The next line, ended by a zero byte and valid until the next call; it may be overwritten.
 * KEEL_END: there is none. KEEL_EFORMAT: longer than KEEL_LINE_MAX, damaged, or not a text. */
keel_status keel_lines_next(keel_lines *l, char **line, size_t *n_bytes);
int64_t keel_lines_number(const keel_lines *l); /* of the line that was read last, from 1 */
void keel_lines_close(keel_lines *l);           /* NULL is allowed */

#endif
