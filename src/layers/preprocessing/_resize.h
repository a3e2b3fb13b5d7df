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

/* The arguments of Resizing and of ops.image.resize besides the size. */
typedef struct keel_aspect {
    int interpolation, fill_mode, data_format;
    bool crop_to_aspect_ratio, pad_to_aspect_ratio, antialias;
    double fill_value;
} keel_aspect;

#define KEEL_ASPECT_FIELD(args, member, kind_, key_, dflt_, choices_, help_)                       \
    {                                                                                              \
        .key = #key_, .kind = kind_, .offset = offsetof(args, member.key_), .dflt = dflt_,         \
        .choices = choices_, .help = help_                                                         \
    }
#define KEEL_ASPECT_FIELDS(args, member)                                                           \
    KEEL_ASPECT_FIELD(args, member, KEEL_FIELD_CHOICE, interpolation, "\"bilinear\"",              \
                      KEEL_RESIZE_METHODS, "between pixels"),                                      \
        KEEL_ASPECT_FIELD(args, member, KEEL_FIELD_BOOL, crop_to_aspect_ratio, "false", NULL,      \
                          "leave out what is too wide or too high"),                               \
        KEEL_ASPECT_FIELD(args, member, KEEL_FIELD_BOOL, pad_to_aspect_ratio, "false", NULL,       \
                          "add borders instead"),                                                  \
        KEEL_ASPECT_FIELD(args, member, KEEL_FIELD_CHOICE, fill_mode, "\"constant\"", "constant",  \
                          "what borders are"),                                                     \
        KEEL_ASPECT_FIELD(args, member, KEEL_FIELD_FLOAT, fill_value, "0.0", NULL,                 \
                          "what fill_mode constant fills with"),                                   \
    {                                                                                              \
        .key = "antialias", .kind = KEEL_FIELD_BOOL, .offset = offsetof(args, member.antialias),   \
        .dflt = "false", .newer = true, .help = "see all of an image that becomes smaller"         \
    }

/* Input 0, an image, as they say. KEEL_EARG: cropped and padded at once. */
keel_status keel_emit_aspect(keel_emit *e, const keel_aspect *a, int64_t height, int64_t width);
/* Input 0, an image, in the new size. */
keel_status keel_emit_resizing(keel_emit *e, const keel_resizing *r);
/* Uses the largest part in the middle of an image of height x width that has the aspect ratio of
 * `size`. */
void keel_resizing_crop(keel_resizing *r, int64_t height, int64_t width);

#endif
