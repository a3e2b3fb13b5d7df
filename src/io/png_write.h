/* A PNG file of 8-bit pixels, in memory. */
#ifndef KEEL_IO_PNG_WRITE_H
#define KEEL_IO_PNG_WRITE_H
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* pixel [height, width, channels], channels 1 (grey), 3 (RGB) or 4 (RGBA). The caller frees *out
 * with keel_free. KEEL_EARG: another shape, or sides above 65535. */
keel_status keel_png_write(void **out, size_t *n_bytes, const unsigned char *pixel, int64_t height,
                           int64_t width, int channels);

#endif
