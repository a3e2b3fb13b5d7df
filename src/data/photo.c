/* See photo.h. */
#include "data/photo.h"
#include "data/codecs/jpeg.h"
#include "data/resample.h"
#include "data/work.h"
#include "tensor/shape.h"

keel_status keel_photo_init(keel_photo *out, const keel_dataset_options *o, const char *what)
{
    const bool blurs = o->interpolation == KEEL_GAUSSIAN || o->interpolation == KEEL_MITCHELLCUBIC;
    if (!o->height || !o->width)
        return keel_fail(
            KEEL_EARG,
            "%s: give the height and width that images are resized to (--image-size H,W)", what);
    if (o->height > KEEL_IMAGE_SIDE_MAX || o->width > KEEL_IMAGE_SIDE_MAX)
        return keel_fail(KEEL_EARG, "%s: images can be resized to at most %d pixels a side", what,
                         KEEL_IMAGE_SIDE_MAX);
    if (o->crop_to_aspect_ratio && o->pad_to_aspect_ratio)
        return keel_fail(
            KEEL_EARG,
            "%s: crop_to_aspect_ratio and pad_to_aspect_ratio: only one of them can be "
            "used",
            what);
    if (o->crop_to_aspect_ratio && blurs)
        return keel_fail(
            KEEL_EUNSUP,
            "%s: crop_to_aspect_ratio does not go with the interpolations gaussian and "
            "mitchellcubic, as in Keras",
            what);
    *out = (keel_photo){ .height = o->height,
                         .width = o->width,
                         .channels = o->color_mode == KEEL_COLOR_GRAYSCALE ? 1
                                     : o->color_mode == KEEL_COLOR_RGBA    ? 4
                                                                           : 3,
                         .interpolation = o->interpolation,
                         .exact = o->interpolation == KEEL_NEAREST,
                         .crop = o->crop_to_aspect_ratio,
                         .pad = o->pad_to_aspect_ratio,
                         .shrinks = o->image_dct_scaling };
    return KEEL_OK;
}

void keel_photo_field(const keel_photo *p, keel_data_field *out)
{
    out->dtype = p->exact ? KEEL_UINT8 : KEEL_FLOAT32;
    out->shape = KEEL_SHAPE(p->height, p->width, p->channels);
}

bool keel_photo_keeps_bytes(const keel_photo *p, int64_t height, int64_t width)
{
    const keel_resample r = keel_photo_resample(p);
    return keel_resample_keeps_bytes(&r, height, width);
}

keel_status keel_photo_check(const keel_photo *p, int64_t height, int64_t width, const char *what)
{
    if (!p->exact || keel_photo_keeps_bytes(p, height, width)) return KEEL_OK;
    return keel_fail(KEEL_EDATA,
                     "%s: %lld x %lld pixels, but %lld x %lld when the directory was opened; open "
                     "it again",
                     what, (long long)height, (long long)width, (long long)p->height,
                     (long long)p->width);
}

keel_status keel_photo_write(const keel_photo *p, const keel_data_field *field,
                             const keel_image *image, void *to, keel_dtype want,
                             keel_scratch *scratch, const char *what)
{
    keel_probe_part(scratch->probe, KEEL_PART_RESIZE);
    const keel_resample r = keel_photo_resample(p);
    const int64_t count = p->height * p->width * p->channels;
    keel_image own = *image;
    KEEL_TRY(keel_photo_check(p, own.height, own.width, what));
    void *at =
        want == field->dtype ? to : keel_scratch_reserve(scratch, 3, (size_t)count * sizeof(float));
    if (!at) return KEEL_ENOMEM;
    const keel_status s = p->exact ? keel_resample_bytes(&r, &own, at)
                                   : keel_resample_floats(&r, &own, at, scratch, 2);
    if (s == KEEL_EDATA) return keel_fail_within(s, "%s", what);
    return s < 0 || at == to ? s : keel_field_write(to, want, at, field, count);
}

keel_status keel_photo_read(const keel_photo *p, const keel_data_field *field, const void *data,
                            size_t n_bytes, void *to, keel_dtype want, keel_scratch *scratch,
                            const char *what)
{
    keel_image image;
    keel_status s = KEEL_END;
    if (p->channels != 4 && keel_jpeg_begins(data, n_bytes))
        s = keel_photo_read_jpeg(p, field, data, n_bytes, to, want, &image, scratch, what);
    else
        KEEL_TRY(keel_image_decode(&image, data, n_bytes, p->channels, scratch, 1, what));
    if (s != KEEL_END) return s;
    return keel_photo_write(p, field, &image, to, want, scratch, what);
}

int64_t keel_photo_converted(const keel_photo *p)
{
    return p->height * p->width * p->channels * (int64_t)sizeof(float);
}

bool keel_photo_needs(const keel_photo *p, const void *head, size_t n_head, size_t n_bytes,
                      int64_t *out)
{
    const keel_resample r = keel_photo_resample(p);
    keel_image_head h;
    *out = 0;
    if (p->channels != 4 && keel_jpeg_begins(head, n_head)) {
        keel_jpeg_head jpeg;
        if (!keel_jpeg_look(&jpeg, head, n_head)) return n_head == n_bytes;
        *out = keel_photo_jpeg_needs(p, &jpeg);
        return true;
    }
    if (!keel_image_look(&h, head, n_head, n_bytes, p->channels)) return n_head == n_bytes;
    if (!h.decoded) return true;
    const int64_t space = p->exact ? 0 : keel_resample_space(&r, h.height, h.width, p->channels);
    *out = h.decoded + (h.own > space ? h.own : space);
    return true;
}
