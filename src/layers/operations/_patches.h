/* The windows of images [C, H, W] as columns, and back: what unfold and fold share. */
#ifndef KEEL_LAYERS_OPERATIONS_PATCHES_H
#define KEEL_LAYERS_OPERATIONS_PATCHES_H
#include "layers/operations/_values.h"

typedef struct keel_patches {
    keel_ints output_size; /* of fold */
    keel_ints kernel_size, dilation, padding, stride;
} keel_patches;

#define KEEL_PATCHES_FIELDS                                                                        \
    KEEL_INTS(keel_patches, kernel_size, 2, NULL, 1, 64, "places of a window"),                    \
        KEEL_INTS(keel_patches, dilation, 2, "1", 1, 1e6, "distance of its places"),               \
        KEEL_INTS(keel_patches, padding, 2, "0", 0, 1e6, "zeros on each side of the image"),       \
        KEEL_INTS(keel_patches, stride, 2, "1", 1, 1e6, "distance of windows")

/* How many windows each dim of an image has. */
static inline keel_status patches_of(const keel_patches *a, int64_t height, int64_t width,
                                     int64_t n[2])
{
    const int64_t size[2] = { height, width };
    for (int i = 0; i < 2; i++) {
        const int64_t room =
            size[i] + 2 * a->padding.at[i] - a->dilation.at[i] * (a->kernel_size.at[i] - 1) - 1;
        if (room < 0)
            return keel_fail(KEEL_ESHAPE, "a window does not fit into %lld places",
                             (long long)size[i]);
        n[i] = room / a->stride.at[i] + 1;
    }
    return KEEL_OK;
}

#endif
