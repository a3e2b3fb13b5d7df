/* Files of text, plain or gzipped: read line by line with a bounded line, or in pieces. A zero byte
 * is no text; a mark at the begin that says UTF-8 is left out; UTF-16 is refused.
 *
 * A gzipped text may expand to a thousand times its size. Beyond 16 MiB it may be at most 200 times
 * as long as its file, so a small file cannot fill the memory. */
#ifndef KEEL_IO_TEXT_FILE_H
#define KEEL_IO_TEXT_FILE_H
#include "base/error.h"
#include "io/file.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KEEL_TEXT_PAD = 64 };             /* zero bytes behind a piece, for readers of blocks */
enum { KEEL_LINE_MAX = 64 << 20 };       /* bytes of the longest line */
#define KEEL_PIECE_MAX ((size_t)1 << 34) /* bytes of the longest record of a table */

/* Bytes of the mark with which a text says that it is UTF-8; 0: it has none. */
static inline size_t keel_text_mark(const char *text, size_t n_bytes)
{
    return n_bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* The lines of a file, without their ends (LF or CR LF). The last one may lack its end. */
typedef struct keel_lines keel_lines;

/* `path` and a text in memory must outlive the lines. A text in memory is read in small pieces that
 * grow, so that a test finds what depends on their ends. */
keel_status keel_lines_open(keel_lines **out, const char *path);
keel_status keel_lines_open_memory(keel_lines **out, const char *text, size_t n_bytes,
                                   const char *what);
/* The next line, ended by a zero byte and valid until the next call; it may be overwritten.
 * KEEL_END: there is none. KEEL_EFORMAT: longer than KEEL_LINE_MAX, damaged, or not a text. */
keel_status keel_lines_next(keel_lines *l, char **line, size_t *n_bytes);
/* Instead of lines: all bytes that are at hand, after more were read; KEEL_TEXT_PAD zero bytes
 * follow. They may be overwritten, and are there again, from the first that was not passed by
 * keel_lines_pass. *last: the file has no more. KEEL_EFORMAT: more than KEEL_PIECE_MAX. */
keel_status keel_lines_more(keel_lines *l, char **text, size_t *n_bytes, bool *last);
void keel_lines_pass(keel_lines *l, size_t n_bytes);
/* Where in the text, unpacked, the first byte is that was not passed. keel_lines_file: the file, if
 * its bytes are the text; NULL: it is gzipped, or in memory. keel_lines_seek, of such a file: go on
 * from this place. */
uint64_t keel_lines_place(const keel_lines *l);
const keel_file *keel_lines_file(const keel_lines *l);
void keel_lines_seek(keel_lines *l, uint64_t place);

int64_t keel_lines_number(const keel_lines *l); /* of the line that was read last, from 1 */
void keel_lines_close(keel_lines *l);           /* NULL is allowed */

#endif
