/* Numbers in texts as in the locale "C". A program that calls Keel may have set another one, whose
 * decimal point is a comma: in a table, JSON or a file's name it would be another text. */
#ifndef KEEL_BASE_C_LOCALE_H
#define KEEL_BASE_C_LOCALE_H
#include "base/error.h"
#include <stdarg.h>
#include <stddef.h>

/* vsnprintf, snprintf and strtod, with a point, whatever setlocale was told. For all numbers that
 * are not whole. */
int keel_vsnprintf(char *out, size_t size, const char *format, va_list list);
int keel_snprintf(char *out, size_t size, const char *format, ...) KEEL_PRINTF(3, 4);
double keel_strtod(const char *text, char **end);

#endif
