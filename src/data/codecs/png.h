/* Inside the PNG decoder: its memory (png_memory.c). */
#ifndef KEEL_DATA_CODECS_PNG_H
#define KEEL_DATA_CODECS_PNG_H
#include "data/codecs/image.h"
#include <spng.h>

/* An allocator for libspng that takes from the account of the thread. */
struct spng_alloc keel_png_alloc(void);
/* From now on that is `a`, which may be NULL. */
void keel_png_begin(keel_account *a);
/* True if there was no room since then; the error text is set. libspng calls some of that a fault
 * of the file. */
bool keel_png_was_short(void);

/* What of the pixels: the format that they are decoded to, and the bytes of one. */
int keel_png_format(const struct spng_ihdr *h, int channels, int *pixel_bytes);

#endif
