/* What layers share that change the size of images. */
#ifndef KEEL_LAYERS_PREPROCESSING_RESIZE_H
#define KEEL_LAYERS_PREPROCESSING_RESIZE_H
#include "layers/layer.h"
#include "ops/resize.h"

typedef struct keel_resizing { /* [0] height, [1] width */
    int64_t size[2];
    int64_t begin[2], length[2]; /* what is seen of the image, or beyond it */
    keel_resize_method method;
    bool antialias;
    double fill; /* beyond the image */
} keel_resizing;

/* Input 0, an image, in the new size. */
keel_status keel_emit_resizing(keel_emit *e, const keel_resizing *r);
/* Uses the largest part in the middle of an image of height x width that has the aspect ratio of
 * `size`. */
void keel_resizing_crop(keel_resizing *r, int64_t height, int64_t width);

#endif
