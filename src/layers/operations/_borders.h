/* What keras.ops.image.pad_images and crop_images share: of the border before, the border behind
 * and the size of the output, two are given for each dim. */
#ifndef KEEL_LAYERS_OPERATIONS_BORDERS_H
#define KEEL_LAYERS_OPERATIONS_BORDERS_H
#include "layers/operations/_image.h"

/* Fills in the one that is null. sign: 1 if borders are added, -1 if they are taken away. */
static keel_status complete(int64_t size, int sign, int64_t *before, int64_t *behind,
                            int64_t *target)
{
    if ((*before == KEEL_INT_NULL) + (*behind == KEEL_INT_NULL) + (*target == KEEL_INT_NULL) != 1)
        return keel_fail(KEEL_EARG, "of both borders and the size of the output, two must be "
                                    "given for height and for width");
    if (*target == KEEL_INT_NULL) *target = size + sign * (*before + *behind);
    if (*before == KEEL_INT_NULL) *before = sign * (*target - size) - *behind;
    if (*behind == KEEL_INT_NULL) *behind = sign * (*target - size) - *before;
    if (*before < 0 || *behind < 0 || *target < 1)
        return keel_fail(KEEL_ESHAPE, "borders of %lld and %lld cannot make %lld places of %lld",
                         (long long)*before, (long long)*behind, (long long)*target,
                         (long long)size);
    return KEEL_OK;
}

#endif
