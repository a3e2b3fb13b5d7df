/* Error text is written once, by the function that detects the error, to a fixed buffer of the
 * thread, so that reporting an error cannot fail. */
#ifndef KEEL_BASE_ERROR_H
#define KEEL_BASE_ERROR_H
#include "keel/status.h"

enum { KEEL_ERROR_MAX = 1024 };

#define KEEL_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Set this thread's error text and return `s`, so that `return keel_fail(...)` reads well. */
keel_status keel_fail(keel_status s, const char *format, ...) KEEL_PRINTF(2, 3);

/* Put "where: " before the current error text; returns `s`. For a caller that knows the file, layer
 * or step, which the callee does not. */
keel_status keel_fail_within(keel_status s, const char *format, ...) KEEL_PRINTF(2, 3);

/* How often this thread has written a text: whether a call between two looks wrote one. */
unsigned keel_error_count(void);

#define KEEL_TRY(call)                                                                             \
    do {                                                                                           \
        const keel_status keel_try_status = (call);                                                \
        if (keel_try_status < 0) return keel_try_status;                                           \
    } while (0)

/* A failure that is passed from a worker to the thread that reports it. */
typedef struct keel_failure {
    keel_status status;
    char text[KEEL_ERROR_MAX];
} keel_failure;

void keel_failure_take(keel_failure *f, keel_status s); /* copy this thread's text */
keel_status keel_failure_raise(const keel_failure *f);  /* make it this thread's text */

#endif
