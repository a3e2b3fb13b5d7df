/* Resizes images to a model's input, as tf.image.resize: half-pixel centres, no antialias. */
#ifndef KEEL_DATA_RESIZE_H
#define KEEL_DATA_RESIZE_H
#include "data/codecs/image.h"

/* Bilinear: out [height, width, channels] of float32, 0..255. Channels are 1, 3 or 4. Uses scratch
 * buffer `buffer`. KEEL_ENOMEM. */
keel_status keel_resize(const keel_image *image, float *out, int64_t height, int64_t width,
                        keel_scratch *scratch, int buffer);

/* Nearest neighbour: out [height, width, channels] of bytes. */
void keel_resize_nearest(const keel_image *image, unsigned char *out, int64_t height,
                         int64_t width);

#endif
