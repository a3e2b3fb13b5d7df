/* A callback of the user's that has failed: what it has said is kept. */
#ifndef KEEL_DATA_SOURCES_CALLED_H
#define KEEL_DATA_SOURCES_CALLED_H
#include "base/error.h"

/* KEEL_ECALLBACK, with the callback's own text behind ours if it wrote one since `said`, a count of
 * keel_error_count. */
#define keel_callback_failed(said, s, format, ...)                                                 \
    (keel_error_count() != (said)                                                                  \
         ? keel_fail_within(KEEL_ECALLBACK, format " returned %s", __VA_ARGS__,                    \
                            keel_status_name(s))                                                   \
         : keel_fail(KEEL_ECALLBACK, format " returned %s", __VA_ARGS__, keel_status_name(s)))

#endif
