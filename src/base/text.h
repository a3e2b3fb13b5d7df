/* A growing text, for messages, tables and JSON that are longer than an error line. */
#ifndef KEEL_BASE_TEXT_H
#define KEEL_BASE_TEXT_H
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct keel_text {
    char *data; /* always terminated once something was added; NULL before */
    size_t length, capacity;
    bool failed; /* an addition ran out of memory: check once at the end */
} keel_text;

void keel_text_add(keel_text *t, const char *format, ...) KEEL_PRINTF(2, 3);
void keel_text_free(keel_text *t);

/* "Conv2D" -> "conv2d", "MaxPooling2D" -> "max_pooling2d", as Keras names layers.
 * Writes at most `size` bytes, terminated. */
void keel_snake_case(char *out, size_t size, const char *name);

/* Write 1234567 as "1,234,567" into out (at least 28 bytes); returns out. */
char *keel_group_digits(char *out, int64_t number);
char *keel_bytes_text(char out[32], int64_t n_bytes); /* "1.5 MiB" */

#endif
