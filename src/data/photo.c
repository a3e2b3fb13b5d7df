/* See photo.h. */
#include "data/photo.h"
#include "data/resize.h"
#include "tensor/shape.h"

keel_status keel_photo_init(keel_photo *out, const keel_dataset_options *o, const char *what)
{
    if (!o->height || !o->width)
        return keel_fail(KEEL_EARG, "%s: give the height and width that images are resized to",
                         what);
    if (o->height > KEEL_IMAGE_SIDE_MAX || o->width > KEEL_IMAGE_SIDE_MAX)
        return keel_fail(KEEL_EARG, "%s: images can be resized to at most %d pixels a side", what,
                         KEEL_IMAGE_SIDE_MAX);
    *out = (keel_photo){ .height = o->height,
                         .width = o->width,
                         .channels = o->color_mode == KEEL_COLOR_GRAYSCALE ? 1 : 3,
                         .interpolation = o->interpolation,
                         .exact = o->interpolation == KEEL_NEAREST };
    return KEEL_OK;
}

void keel_photo_field(const keel_photo *p, keel_data_field *out)
{
    out->dtype = p->exact ? KEEL_UINT8 : KEEL_FLOAT32;
    out->shape = KEEL_SHAPE(p->height, p->width, p->channels);
}

static int64_t values(const keel_photo *p)
{
    return p->height * p->width * p->channels;
}

static keel_status write_bytes(const keel_photo *p, const keel_data_field *field,
                               const keel_image *image, void *to, keel_dtype want,
                               keel_scratch *scratch, const char *what)
{
    const int64_t h = p->height, w = p->width;
    const unsigned char *pixels = image->pixels;
    if (image->height != h || image->width != w) {
        if (p->interpolation != KEEL_NEAREST)
            return keel_fail(KEEL_EDATA,
                             "%s: %lld x %lld pixels, but %lld x %lld when the directory was "
                             "opened; open it again",
                             what, (long long)image->height, (long long)image->width, (long long)h,
                             (long long)w);
        unsigned char *resized =
            want == KEEL_UINT8 ? to : keel_scratch_reserve(scratch, 2, (size_t)values(p));
        if (!resized) return KEEL_ENOMEM;
        keel_resize_nearest(image, resized, h, w);
        if (resized == to) return KEEL_OK;
        pixels = resized;
    }
    return keel_field_write(to, want, pixels, field, values(p));
}

static keel_status write_floats(const keel_photo *p, const keel_data_field *field,
                                const keel_image *image, void *to, keel_dtype want,
                                keel_scratch *scratch)
{
    if (want == KEEL_FLOAT32) return keel_resize(image, to, p->height, p->width, scratch, 2);
    float *resized = keel_scratch_reserve(scratch, 3, (size_t)values(p) * sizeof *resized);
    if (!resized) return KEEL_ENOMEM;
    KEEL_TRY(keel_resize(image, resized, p->height, p->width, scratch, 2));
    return keel_field_write(to, want, resized, field, values(p));
}

keel_status keel_photo_write(const keel_photo *p, const keel_data_field *field,
                             const keel_image *image, void *to, keel_dtype want,
                             keel_scratch *scratch, const char *what)
{
    return p->exact ? write_bytes(p, field, image, to, want, scratch, what)
                    : write_floats(p, field, image, to, want, scratch);
}
