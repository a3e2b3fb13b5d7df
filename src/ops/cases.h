/* Reading the args of a test case: words and numbers, "strides 2,2 groups 2". */
#ifndef KEEL_OPS_CASES_H
#define KEEL_OPS_CASES_H
#include <stdbool.h>
#include <stdint.h>

/* The numbers after the word `key`: how many there were (at most max); the rest of out stays as
 * it was, so defaults are set before. text may be NULL. */
int keel_case_ints(const char *text, const char *key, int64_t *out, int max);
int keel_case_number(const char *text, const char *key, double *out);
bool keel_case_has(const char *text, const char *key);

#endif
