/* See pattern.h. POSIX's extended expressions, without what they and Python read differently, and
 * without that with which a file could exhaust the memory or stack of the compiler of expressions:
 * intervals, and long ones. */
#include "optimizers/pattern.h"
#include <regex.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 256 };

keel_status keel_pattern_finds(const char *what, const char *pattern, const char *name, bool whole,
                               bool *out)
{
    char text[LONGEST + 8];
    regex_t compiled;
    if (strlen(pattern) > LONGEST)
        return keel_fail(KEEL_EUNSUP, "%s: an expression of more than %d letters", what, LONGEST);
    for (const char *c = pattern; *c; c++)
        if (*c == '\\' || *c == '{' || (*c == '?' && c > pattern && strchr("(*+?}", c[-1])))
            return keel_fail(KEEL_EUNSUP,
                             "%s: '%.60s' is more than a plain regular expression; use letters, "
                             "'.', '*', '+', '|', '^', '$', [ ] and ( )",
                             what, pattern);
    snprintf(text, sizeof text, whole ? "^(%s)$" : "%s", pattern);
    const int failed = regcomp(&compiled, text, REG_EXTENDED | REG_NOSUB);
    if (failed == REG_ESPACE) return keel_fail(KEEL_ENOMEM, "out of memory: %s", what);
    if (failed) return keel_fail(KEEL_EARG, "%s: '%.60s' is no regular expression", what, pattern);
    *out = regexec(&compiled, name, 0, NULL, 0) == 0;
    regfree(&compiled);
    return KEEL_OK;
}
