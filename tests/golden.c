/* The folder of the real Keras's numbers: the build names it, since __FILE__ may be a path that the
 * compiler was asked to shorten. */
#include "golden.h"
#include "base/memory.h"
#include "base/python_json.h"
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

json_t *golden_load(const char *name)
{
    const char *path = golden_path("%s", name);
    FILE *f = fopen(path, "rb");
    long n = -1;
    size_t n_plain = 0;
    char *text = NULL, *plain = NULL;
    json_error_t e = { .text = "cannot be read" };
    json_t *j = NULL;
    if (f && !fseek(f, 0, SEEK_END) && (n = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET))
        text = malloc((size_t)n + 1);
    if (text && fread(text, 1, (size_t)n, f) == (size_t)n)
        plain = keel_python_json_read(text, (size_t)n, &n_plain);
    if (plain) j = json_loadb(plain, n_plain, 0, &e);
    if (f) fclose(f);
    free(text);
    keel_free(plain);
    if (j) return j;
    fprintf(stderr, "%s: %s\n", path, e.text);
    exit(1);
}
