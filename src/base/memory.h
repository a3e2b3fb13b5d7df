/* The only allocator of Keel: zeroed, overflow-checked and counted. A test can make any single
 * allocation fail. */
#ifndef KEEL_BASE_MEMORY_H
#define KEEL_BASE_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL: out of memory, with the error text set. n * size may be 0, which gives a valid pointer. */
void *keel_calloc(size_t n, size_t size);
void *keel_aligned_calloc(size_t n, size_t size); /* 64-byte aligned; a large block is in untouched
                                                     huge pages; not for keel_grow */
void *keel_grow(void *p, size_t n, size_t size);  /* realloc; new bytes are not zeroed */
/* A large block of keel_grow that is about to be written from end to end: its memory comes in huge
 * pages then, where the system has them. Moving it would break them up. */
void keel_want_huge_pages(void *block, size_t bytes);
/* What these bytes of a block hold is not needed any more. If there are many, the system gets their
 * pages back until they are written again; what they hold until then is not defined. */
void keel_leave(void *bytes, size_t n);
bool keel_leaves(size_t n); /* whether these are enough bytes for that */
/* Copies n bytes. leaves: they are not needed any more where they were, and left there piece by
 * piece, so that both places together take little more than one. */
void keel_copy(void *to, void *from, size_t n, bool leaves);
char *keel_strdup(const char *s);
char *keel_strndup(const char *s, size_t n);
void keel_free(void *p); /* frees a block of any function above; NULL is allowed */

bool keel_mul(size_t a, size_t b, size_t *product);        /* false on overflow */
bool keel_mul_i64(int64_t a, int64_t b, int64_t *product); /* false on overflow or a negative */

/* For tests: the number of live blocks, the number of requests so far, and a request that fails. */
int64_t keel_memory_live(void);
int64_t keel_memory_calls(void);
void keel_memory_fail_at(
    int64_t call); /* the call-th request from now fails (0: the next); -1: none */

#endif
