/* Parses SRC of the command line; see spec.h. */
#include "data/spec.h"
#include "base/memory.h"
#include <string.h>
#include <strings.h>

bool keel_spec_ends(const char *spec, size_t length, const char *ending)
{
    const size_t n = strlen(ending);
    return length >= n && !strncasecmp(spec + length - n, ending, n);
}

const char *keel_spec_comma(const char *spec)
{
    const char *comma = strchr(spec, ',');
    return comma && comma > spec && comma[1] ? comma : NULL;
}

keel_status keel_spec_split(const char *spec, char **first, char **second)
{
    const char *comma = keel_spec_comma(spec);
    char *a = keel_strndup(spec, comma ? (size_t)(comma - spec) : strlen(spec));
    char *b = comma ? keel_strdup(comma + 1) : NULL;
    if (!a || (comma && !b)) {
        keel_free(a);
        keel_free(b);
        return KEEL_ENOMEM;
    }
    *first = a;
    *second = b;
    return KEEL_OK;
}
