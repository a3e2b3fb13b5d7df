/* Rows in a terminal. */
#ifndef KEEL_CLI_SHOWN_H
#define KEEL_CLI_SHOWN_H
#include "command.h"
#include "samples.h"

/* Print a value on a line: a short one whole, a long one by its first numbers and its range. */
void keel_shown_value(const keel_tensor *t);

/* Print the first rows as pictures, of a batch the first 6. *shown is false, and nothing is
 * printed, if no field is an image, or standard output is no terminal of 24-bit colours: COLORTERM
 * is truecolor or 24bit, NO_COLOR is not set, and the locale is UTF-8. */
keel_status keel_shown_images(const keel_dataset *d, int64_t rows, const keel_reader_options *r,
                              bool *shown);

#endif
