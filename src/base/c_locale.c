/* See c_locale.h. The locale of the calling thread is changed for the call: glibc has no vsnprintf
 * that takes one. */
#define _GNU_SOURCE /* strtod_l */
#include "base/c_locale.h"
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static locale_t c_locale;
static pthread_once_t c_locale_made = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", NULL); /* of glibc: a constant, which never fails */
}

int keel_vsnprintf(char *out, size_t size, const char *format, va_list list)
{
    pthread_once(&c_locale_made, make_c_locale);
    const locale_t before = uselocale(c_locale);
    const int n = vsnprintf(out, size, format, list);
    uselocale(before);
    return n;
}

int keel_snprintf(char *out, size_t size, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const int n = keel_vsnprintf(out, size, format, list);
    va_end(list);
    return n;
}

double keel_strtod(const char *text, char **end)
{
    pthread_once(&c_locale_made, make_c_locale);
    return strtod_l(text, end, c_locale);
}
