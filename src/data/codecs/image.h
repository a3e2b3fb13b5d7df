/* Decodes image files to 8-bit RGB or gray, with the pixels of tf.io.decode_image. */
#ifndef KEEL_DATA_CODECS_IMAGE_H
#define KEEL_DATA_CODECS_IMAGE_H
#include "data/source.h"

enum { KEEL_IMAGE_SIDE_MAX = 32768 }; /* pixels; a larger image is refused */
#define KEEL_IMAGE_BYTES_MAX (INT64_C(1) << 30)

typedef struct keel_image { /* rows of interleaved bytes, no padding; lives in a scratch buffer */
    const unsigned char *pixels;
    int64_t height, width;
    int channels; /* 1 or 3, as requested */
} keel_image;

/* Decode a file in memory, of the format that its first bytes show, into scratch buffer `buffer`.
 * channels: 1 or 3. `what` names the file in messages. KEEL_EFORMAT: not an image, truncated or
 * damaged; KEEL_EUNSUP: another image format. */
keel_status keel_image_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                              keel_scratch *scratch, int buffer, const char *what);

/* True if the bytes begin as a JPEG or PNG file does. */
bool keel_image_begins(const void *data, size_t n_bytes);

/* The image size from the first bytes of a file. False: these bytes do not contain it. */
bool keel_image_size(const void *data, size_t n_bytes, int64_t *height, int64_t *width);

bool keel_jpeg_size(const unsigned char *data, size_t n_bytes, int64_t *height, int64_t *width);
keel_status keel_jpeg_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                             keel_scratch *scratch, int buffer, const char *what);
keel_status keel_png_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                            keel_scratch *scratch, int buffer, const char *what);

/* KEEL_EFORMAT: a side is 0 or too large, or decoding, at pixel_bytes of memory per pixel, would
 * take more than KEEL_IMAGE_BYTES_MAX. */
keel_status keel_image_check_size(int64_t height, int64_t width, int64_t pixel_bytes,
                                  const char *what);

#endif
