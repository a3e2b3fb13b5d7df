/* Decoding of image files to 8-bit RGB or gray, as tf.io.decode_image gives it to Keras. */
#ifndef KEEL_DATA_CODECS_IMAGE_H
#define KEEL_DATA_CODECS_IMAGE_H
#include "data/source.h"

enum { KEEL_IMAGE_SIDE_MAX = 32768 }; /* pixels; more is refused, whatever the file says */
#define KEEL_IMAGE_BYTES_MAX (INT64_C(1) << 30)

typedef struct keel_image { /* rows of interleaved bytes, no padding; lives in a scratch buffer */
    const unsigned char *pixels;
    int64_t height, width;
    int channels; /* 1 or 3, as asked */
} keel_image;

/* Decode a file in memory, told by its first bytes, into scratch buffer `buffer`. channels: 1 or 3.
 * `what` names the file in messages. KEEL_EFORMAT: no image, cut short or damaged; KEEL_EUNSUP: a
 * kind that is not read. */
keel_status keel_image_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                              keel_scratch *scratch, int buffer, const char *what);

/* The size of the image that a file holds, as its first bytes tell it. false: they do not. */
bool keel_image_size(const void *data, size_t n_bytes, int64_t *height, int64_t *width);

bool keel_jpeg_size(const unsigned char *data, size_t n_bytes, int64_t *height, int64_t *width);
keel_status keel_jpeg_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                             keel_scratch *scratch, int buffer, const char *what);
keel_status keel_png_decode(keel_image *out, const void *data, size_t n_bytes, int channels,
                            keel_scratch *scratch, int buffer, const char *what);

/* KEEL_EFORMAT where the sides are 0 or too large, or where decoding, which takes so many bytes a
 * pixel for all that it holds at once, would take more than KEEL_IMAGE_BYTES_MAX. */
keel_status keel_image_check_size(int64_t height, int64_t width, int64_t pixel_bytes,
                                  const char *what);

#endif
