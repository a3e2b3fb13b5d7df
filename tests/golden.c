/* The folder of the real Keras's numbers: the build names it, since __FILE__ may be a path that the
 * compiler was asked to shorten. */
#include "golden.h"
#include <stdarg.h>

const char *golden_path(const char *format, ...)
{
    static char path[2][4096];
    static int turn;
    char *out = path[turn ^= 1];
    const int n = snprintf(out, sizeof path[0], "%s/", KEEL_GOLDEN_FOLDER);
    va_list names;
    va_start(names, format);
    vsnprintf(out + n, sizeof path[0] - (size_t)n, format, names);
    va_end(names);
    return out;
}
