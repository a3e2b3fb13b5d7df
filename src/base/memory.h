/* All memory of Keel comes from here: zeroed, overflow-checked, counted, and able to fail on
 * demand so that a test can fail every allocation once. */
#ifndef KEEL_BASE_MEMORY_H
#define KEEL_BASE_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns NULL with KEEL_ENOMEM's text set. n * size may be 0: a valid pointer comes back. */
void *keel_calloc(size_t n, size_t size);
void *keel_aligned_calloc(size_t n, size_t size); /* 64-byte aligned; large: huge pages, untouched;
                                                     not for keel_grow */
void *keel_grow(void *p, size_t n, size_t size);  /* realloc; new bytes are not zeroed */
char *keel_strdup(const char *s);
char *keel_strndup(const char *s, size_t n);
void keel_free(void *p); /* NULL is fine; frees what any of the above gave */

bool keel_mul(size_t a, size_t b, size_t *product);        /* false on overflow */
bool keel_mul_i64(int64_t a, int64_t b, int64_t *product); /* false on overflow or a negative */

/* For tests: how many blocks are live, how many were ever asked for, and a request to fail. */
int64_t keel_memory_live(void);
int64_t keel_memory_calls(void);
void keel_memory_fail_at(
    int64_t call); /* the call-th request from now fails (0: the next); -1: none */

#endif
