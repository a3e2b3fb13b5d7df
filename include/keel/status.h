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
    X(EDEVICE, -7, "a device failed or does not exist")                                            \
    X(EDATA, -8, "the data cannot provide what was requested")                                     \
    X(ENUMERIC, -9, "a value is not finite")                                                       \
    X(ECALLBACK, -10, "a callback of the user failed")                                             \
    X(EREMOTE, -11, "another rank failed; the job cannot continue")                                \
    X(ETIMEOUT, -12, "data did not come in time")

typedef enum keel_status {
#define X(name, value, text) KEEL_##name = value,
    KEEL_STATUS_MAP(X)
#undef X
} keel_status; /* < 0: failure; KEEL_END is not a failure */

/* The name of a status, "KEEL_EARG".
 *
 * Returns  a static string; "KEEL_?" for any other number
 * Owns     nothing changes hands
 * Threads  any */
const char *keel_status_name(keel_status status);

/* The error text of the last failed call of this thread: what, where, what to do. One line, without
 * newline.
 *
 * Returns  a buffer of this thread, valid until its next failed call; "" before the first
 * Owns     nothing changes hands
 * Threads  any; each thread has its own text */
const char *keel_error(void);

/* Set that text, for a callback that fails: a status alone does not say what went wrong. Control
 * characters are replaced as in keel_printable; of a long text the beginning is kept.
 *
 * Returns  `status`, so that a callback can write: return keel_error_set(KEEL_EIO, "no camera");
 * Owns     nothing changes hands; the text is copied
 * Threads  any; each thread has its own text */
keel_status keel_error_set(keel_status status, const char *text);

/* Copy `text`, at most size - 1 bytes of it, in a form that is safe to print on a terminal. A tab
 * or newline becomes a space. Any other control character (C0, DEL, C1, line ends, changes of
 * direction) and each byte that is not UTF-8 becomes '?'. For names that come from files. The
 * result is never longer than the text, so `out` may be `text`. Characters are not split; size 0
 * writes nothing.
 *
 * Returns  out
 * Owns     nothing changes hands
 * Threads  any */
char *keel_printable(char *out, size_t size, const char *text);

#ifdef __cplusplus
}
#endif
#endif
