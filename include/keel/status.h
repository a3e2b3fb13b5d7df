/* Statuses and the text of the last error. */
#ifndef KEEL_STATUS_H
#define KEEL_STATUS_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One line per status: the enum, keel_status_name() and the tests all read it. */
#define KEEL_STATUS_MAP(X)                                                                         \
    X(END, 1, "end of data")                                                                       \
    X(OK, 0, "success")                                                                            \
    X(ENOMEM, -1, "out of memory")                                                                 \
    X(EARG, -2, "an argument is wrong")                                                            \
    X(ESHAPE, -3, "shapes do not fit")                                                             \
    X(EUNSUP, -4, "not supported")                                                                 \
    X(EIO, -5, "a file could not be read or written")                                              \
    X(EFORMAT, -6, "a file or record is damaged")                                                  \
    X(EDEVICE, -7, "a device failed or is not there")                                              \
    X(EDATA, -8, "the data cannot serve what was asked")                                           \
    X(ENUMERIC, -9, "a value is not finite")                                                       \
    X(ECALLBACK, -10, "a callback of the user failed")                                             \
    X(EREMOTE, -11, "another rank failed; the job cannot continue")

typedef enum keel_status {
#define X(name, value, text) KEEL_##name = value,
    KEEL_STATUS_MAP(X)
#undef X
} keel_status; /* < 0 is failure; KEEL_END is news, not failure */

/* The name of a status, "KEEL_EARG".
 *
 * Returns  a static string; "KEEL_?" for a number that is none
 * Owns     nothing changes hands
 * Threads  any */
const char *keel_status_name(keel_status status);

/* What the last failed call of this thread says: what, where, what to do. One line, no newline.
 *
 * Returns  a buffer of this thread, valid until its next failing call; "" before the first
 * Owns     nothing changes hands
 * Threads  any; each thread has its own text */
const char *keel_error(void);

/* Copy `text`, at most size - 1 bytes of it, so that a terminal shows it and obeys nothing in it:
 * a tab or newline becomes a space; another control character (C0, DEL, C1, those that end a line
 * or turn its direction) and each byte that is not UTF-8 becomes '?'. For names that come from
 * files. Never longer than the text, so `out` may be `text`. Whole characters only; size 0 writes
 * nothing.
 *
 * Returns  out
 * Owns     nothing changes hands
 * Threads  any */
char *keel_printable(char *out, size_t size, const char *text);

#ifdef __cplusplus
}
#endif
#endif
