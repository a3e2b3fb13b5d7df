/* A growing text, for messages, tables and JSON that are longer than an error line. */
#ifndef KEEL_BASE_TEXT_H
#define KEEL_BASE_TEXT_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct keel_text {
    char *data; /* zero-terminated; NULL until something was added */
    size_t length, capacity;
    bool failed; /* an addition ran out of memory; check it once at the end */
} keel_text;

void keel_text_add(keel_text *t, const char *format, ...) KEEL_PRINTF(2, 3);
void keel_text_free(keel_text *t);

/* The length in bytes, 1 to 4, of the UTF-8 character at text[0 .. n - 1], and its code (unless
 * NULL). 0: invalid (a lone or missing byte, an overlong form, a surrogate), or n is 0. */
int keel_utf8_next(const char *text, size_t n, uint32_t *code);

/* Add a name from a file in printable form, padded with spaces to `width` characters; and the
 * number of characters of such a name. */
void keel_text_add_name(keel_text *t, size_t width, const char *name);
size_t keel_name_width(const char *name);

/* "Conv2D" -> "conv2d", "MaxPooling2D" -> "max_pooling2d", as Keras names layers.
 * Writes at most `size` bytes, terminated. */
void keel_snake_case(char *out, size_t size, const char *name);

/* Write 1234567 as "1,234,567" into out (at least 28 bytes); returns out. */
char *keel_group_digits(char *out, int64_t number);
char *keel_bytes_text(char out[32], int64_t n_bytes); /* "1.5 MiB" */

#endif
