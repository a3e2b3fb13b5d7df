/* Images of pixels of any size, mirrored. What is written may be what is read. */
#ifndef KEEL_OPS_MIRROR_H
#define KEEL_OPS_MIRROR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of n pixels of `size` bytes, in the opposite order. */
void keel_mirror_line(char *to, const char *from, int64_t n, size_t size);

/* An image of h lines of w pixels: across, each line; down, the order of the lines. */
void keel_mirror(char *to, const char *from, int64_t h, int64_t w, size_t size, bool across,
                 bool down);

#endif
