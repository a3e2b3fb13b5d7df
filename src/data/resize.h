/* Resizes images to a model's input, as tf.image.resize: half-pixel centres, no antialias. */
#ifndef KEEL_DATA_RESIZE_H
#define KEEL_DATA_RESIZE_H
#include "data/codecs/image.h"

/* Bilinear: out [height, width, channels] of float32, 0..255. Channels are 1, 3 or 4. Uses scratch
 * buffer `buffer`. KEEL_ENOMEM. */
keel_status keel_resize(const keel_image *image, float *out, int64_t height, int64_t width,
                        keel_scratch *scratch, int buffer);

/* An image whose lines come one after another: line(context, y) is asked for rising y, and for none
 * twice; a line is used before the next is asked for. NULL: it failed, and the error is set. */
typedef struct keel_image_lines {
    const unsigned char *(*line)(void *context, int64_t y);
    void *context;
    int64_t height, width;
    int channels;
} keel_image_lines;

/* The same from lines. KEEL_EFORMAT: a line failed; the error is the one that it set. */
/* The bytes of scratch for rows of that width. */
size_t keel_resize_space(int64_t width, int channels);
keel_status keel_resize_lines(const keel_image_lines *from, float *out, int64_t height,
                              int64_t width, keel_scratch *scratch, int buffer);

/* Nearest neighbour: out [height, width, channels] of bytes. */
void keel_resize_nearest(const keel_image *image, unsigned char *out, int64_t height,
                         int64_t width);

#endif
