/* What layers share that change each image of a batch at random, only in training. */
#ifndef KEEL_LAYERS_PREPROCESSING_RANDOM_H
#define KEEL_LAYERS_PREPROCESSING_RANDOM_H
#include "layers/layer.h"
#include "ops/erase.h"
#include "ops/recolor.h"
#include "ops/smooth.h"
#include "ops/warp.h"

/* A factor: a number, or a pair of numbers; written as it was given. */
#define KEEL_FACTOR(args, member, dflt_, help_)                                                    \
    {                                                                                              \
        .key = #member, .kind = KEEL_FIELD_REALS, .offset = offsetof(args, member), .dflt = dflt_, \
        .count = -1, .help = help_                                                                 \
    }

/* The range of the draws: for a number f [-|f|, |f|], but not below bounds.low; for a pair from the
 * smaller to the larger number. KEEL_EARG names the key if the range is not within the bounds. As
 * in Keras a part of a pair's range within them is enough, unless `all` is set. */
keel_status keel_factor_range(keel_range *out, const keel_reals *factor, const char *key,
                              keel_range bounds, bool all);

/* value_range: the smallest and the largest value of the images, in any order. */
keel_status keel_value_range(keel_range *out, const keel_reals *value_range);

/* The arguments of layers that change images of values in value_range by one factor. */
typedef struct keel_factor_args {
    keel_reals factor, value_range;
    keel_range range, values; /* of the draws; of the images */
    int data_format;
} keel_factor_args;

#define KEEL_FACTOR_FIELDS(help_)                                                                  \
    KEEL_FACTOR(keel_factor_args, factor, NULL, help_),                                            \
        KEEL_VALUE_RANGE(keel_factor_args, value_range),                                           \
        KEEL_IGNORE("seed", "the seed of the run decides"), KEEL_DATA_FORMAT(keel_factor_args)

/* keel_type.ready of such layers: the factor is in [0, 1], or signed in [-1, 1]. */
keel_status keel_factor_ready(void *args);
keel_status keel_factor_ready_signed(void *args);

/* Such a layer, of the file's fields and emit. */
#define KEEL_FACTOR_LAYER(stem, class_, ready_, help_)                                             \
    const keel_layer keel_layer_##stem = {                                                         \
        .type = { .name = class_,                                                                  \
                  .module = "keras.layers",                                                        \
                  .help = help_,                                                                   \
                  .args_size = sizeof(keel_factor_args),                                           \
                  .fields = fields,                                                                \
                  .ready = ready_ },                                                               \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .by_chance = true,                                                                         \
        .emit = emit,                                                                              \
    }

typedef struct keel_warp_look { /* arguments that all layers have which interpolate */
    int fill_mode, interpolation;
    double fill_value;
} keel_warp_look;

#define KEEL_WARP_FIELDS(args, look)                                                               \
    { .key = "fill_mode",                                                                          \
      .kind = KEEL_FIELD_CHOICE,                                                                   \
      .offset = offsetof(args, look.fill_mode),                                                    \
      .dflt = "\"reflect\"",                                                                       \
      .choices = "reflect|constant|wrap|nearest",                                                  \
      .help = "what is seen outside of the image" },                                               \
        { .key = "interpolation",                                                                  \
          .kind = KEEL_FIELD_CHOICE,                                                               \
          .offset = offsetof(args, look.interpolation),                                            \
          .dflt = "\"bilinear\"",                                                                  \
          .choices = "bilinear|nearest",                                                           \
          .help = "between pixels" },                                                              \
    {                                                                                              \
        .key = "fill_value", .kind = KEEL_FIELD_FLOAT, .offset = offsetof(args, look.fill_value),  \
        .dflt = "0.0", .help = "what fill_mode constant fills with"                                \
    }

#define KEEL_VALUE_RANGE(args, member)                                                             \
    {                                                                                              \
        .key = "value_range", .kind = KEEL_FIELD_REALS, .offset = offsetof(args, member),          \
        .dflt = "[0, 255]", .help = "least and largest value of the images"                        \
    }

/* Emits the projection in training; otherwise the image stays. */
keel_status keel_emit_warp(keel_emit *e, const keel_warp_args *op, const keel_warp_look *look);
/* The same for any op on images. */
keel_status keel_emit_chance(keel_emit *e, const keel_op *op, const void *args);
/* The same for a change of colours. */
keel_status keel_emit_recolor(keel_emit *e, const keel_recolor_args *op);
/* For a layer that mixes rows of a batch: in inference images stay. KEEL_EUNSUP in training: a row
 * would depend on rows of other devices, and labels, which must be mixed like the images, do not
 * reach a layer of a model, in Keras either. */
keel_status keel_emit_mixing(keel_emit *e);
/* KEEL_ESHAPE: the change needs colours, and the image has none. */
keel_status keel_recolor_check(keel_recolor_kind kind, const keel_spec *image);

#endif
