/* Reads a test case: its shapes, "8,8,3|16", and its args, words and numbers: "strides 2,2 groups
 * 2". */
#ifndef KEEL_OPS_CASES_H
#define KEEL_OPS_CASES_H
#include "ops/op.h"
#include <stdbool.h>
#include <stdint.h>

/* The shapes of a row, separated by '|'. Returns how many there are, at most max. text may be NULL.
 */
int keel_case_shapes(const char *text, keel_dtype dtype, keel_spec *out, int max);

/* The numbers after the word `key`. Returns how many there are, at most max; other elements of out
 * keep their values, so set defaults before. text may be NULL. */
int keel_case_ints(const char *text, const char *key, int64_t *out, int max);
int keel_case_number(const char *text, const char *key, double *out);
bool keel_case_has(const char *text, const char *key);

#endif
