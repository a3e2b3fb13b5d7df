/* Callbacks of the user's: what is checked of them, and a failure, whose text is kept. */
#ifndef KEEL_DATA_SOURCES_CALLED_H
#define KEEL_DATA_SOURCES_CALLED_H
#include "base/error.h"
#include "keel/dataset.h"

/* KEEL_ECALLBACK, with the callback's own text behind ours if it wrote one since `said`, a count of
 * keel_error_count. */
#define keel_callback_failed(said, s, format, ...)                                                 \
    (keel_error_count() != (said)                                                                  \
         ? keel_fail_within(KEEL_ECALLBACK, format " returned %s", __VA_ARGS__,                    \
                            keel_status_name(s))                                                   \
         : keel_fail(KEEL_ECALLBACK, format " returned %s", __VA_ARGS__, keel_status_name(s)))

/* Of a function that makes rows of n_field fields; 0: those of its input. KEEL_EARG. */
static inline keel_status keel_callback_check(const char *name, bool is_there, int n_field,
                                              const keel_data_field *field)
{
    if (!is_there) return keel_fail(KEEL_EARG, "%s: call is NULL", name);
    if (n_field < 0 || n_field > KEEL_FIELDS_MAX || (n_field && !field))
        return keel_fail(KEEL_EARG, "%s: 0 to %d fields", name, KEEL_FIELDS_MAX);
    return KEEL_OK;
}

#endif
