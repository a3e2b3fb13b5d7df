/* Images in another height and width. */
#include "layers/operations/_image.h"
#include "layers/preprocessing/_resize.h"

typedef struct args_t {
    keel_ints size;
    keel_aspect aspect;
} args_t;

static const keel_field fields[] = {
    KEEL_INTS(args_t, size, 2, NULL, 1, 1 << 24, "height and width of the output"),
    KEEL_ASPECT_FIELDS(args_t, aspect),
    { .key = "data_format",
      .kind = KEEL_FIELD_CHOICE,
      .offset = offsetof(args_t, aspect.data_format),
      .dflt = "null",
      .choices = "channels_last|channels_first",
      .help = "order of the dims; null is channels_last, which is the only one supported" },
    { 0 },
};

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    keel_shape in;
    if (a->aspect.interpolation != KEEL_RESIZE_NEAREST)
        KEEL_TRY(keel_emit_not_whole(e, "Keras rounds what lies between pixels"));
    KEEL_TRY(keel_image_in(e, a->aspect.data_format, &in));
    return keel_emit_aspect(e, &a->aspect, a->size.at[0], a->size.at[1]);
}

KEEL_IMAGE_OPERATION(ops_image_resize, "Resize", args_t, "Images in another height and width.")
