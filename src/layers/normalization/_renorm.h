/* Batch renormalization: what BatchNormalization reads for it, and its three more weights. Ioffe
 * 2017. */
#ifndef KEEL_LAYERS_NORMALIZATION_RENORM_H
#define KEEL_LAYERS_NORMALIZATION_RENORM_H
#include "layers/layer.h"
#include "ops/batch_norm.h"

typedef struct keel_renorm {
    bool renorm;
    json_t *renorm_clipping; /* {"rmin", "rmax", "dmax"}, or NULL */
    double renorm_momentum;
} keel_renorm;

#define KEEL_RENORM_FIELDS(args, member)                                                           \
    { .key = "renorm",                                                                             \
      .kind = KEEL_FIELD_BOOL,                                                                     \
      .offset = offsetof(args, member.renorm),                                                     \
      .dflt = "false",                                                                             \
      .newer = true,                                                                               \
      .help = "correct the batch's statistics by moving ones: batch renormalization" },            \
        { .key = "renorm_clipping",                                                                \
          .kind = KEEL_FIELD_LIST,                                                                 \
          .offset = offsetof(args, member.renorm_clipping),                                        \
          .dflt = "null",                                                                          \
          .count = KEEL_A_DICTIONARY,                                                              \
          .nullable = true,                                                                        \
          .newer = true,                                                                           \
          .help = "bounds of the correction: a dictionary of rmin, rmax and dmax" },               \
    {                                                                                              \
        .key = "renorm_momentum", .kind = KEEL_FIELD_FLOAT,                                        \
        .offset = offsetof(args, member.renorm_momentum), .dflt = "0.99", .min = 0, .max = 1,      \
        .newer = true, .help = "of the moving statistics that correct"                             \
    }

/* Reads the arguments; KEEL_EARG: a bound that is not known, no number, or out of order. */
keel_status keel_renorm_read(const keel_renorm *r, keel_batch_renorm *out);
/* Declares the weights after the moving variance, whose initializers are those given. */
keel_status keel_renorm_declare(keel_emit *e, const keel_shape *channels, const keel_object *mean,
                                const keel_object *variance, keel_weights *w);

#endif
