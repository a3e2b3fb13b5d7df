/* Decimal numbers in texts of files, read without locale and rounded as by strtod. */
#ifndef KEEL_IO_NUMBER_H
#define KEEL_IO_NUMBER_H

/* Read the number that `text` begins with: a sign, digits with or without a point, an exponent;
 * neither spaces, nor inf, nan or hexadecimal digits. *value is the nearest double, a tie to even;
 * infinite if no double is that large. Returns the first byte behind the number, or `text` if there
 * is none. The text must end with a zero byte at or before `end`, up to which memory is read. */
const char *keel_number_scan(const char *text, const char *end, double *value);

#endif
