/* What is said of data that no source claims. */
#ifndef KEEL_DATA_UNKNOWN_H
#define KEEL_DATA_UNKNOWN_H
#include "base/error.h"

/* KEEL_EARG: it is a URL. Asked before any source claims it, since its ending may be that of a
 * file.
 */
keel_status keel_data_no_url(const char *spec);

/* Always a failure. KEEL_EIO: it is not there. KEEL_EARG: it is of a known format that Keel does
 * not read, and what to do instead; or of none, and what Keel reads. */
keel_status keel_data_unknown(const char *spec);

#endif
