/* Infinity, -Infinity and NaN, which Python writes into JSON and which JSON has not: between
 * reading and writing such a number is a text that no config of Keras has. */
#ifndef KEEL_BASE_PYTHON_JSON_H
#define KEEL_BASE_PYTHON_JSON_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A copy of the text with such numbers as texts, to be released by keel_free, and its length. NULL:
 * out of memory. */
char *keel_python_json_read(const char *text, size_t n_bytes, size_t *n_out);
/* Makes numbers of such texts again, in place. */
void keel_python_json_write(char *text);

/* Whether v is a number, also one of these three. *out is left as it is if it is none. */
bool keel_json_number(const json_t *v, double *out);
/* A new value for any number; NULL: out of memory. */
json_t *keel_json_of_number(double x);

#endif
