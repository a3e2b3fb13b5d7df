/* LoRA: a layer whose kernel is frozen, to which the product of two narrow matrices is added that
 * are trained. Keras's files have the sum as the kernel and nothing of the two: they begin anew
 * with each file. Files of Keel have them besides, by names that Keras does not read. Hu et al.
 * 2021. */
#ifndef KEEL_LAYERS_CORE_LOW_RANK_H
#define KEEL_LAYERS_CORE_LOW_RANK_H
#include "layers/layer.h"

typedef struct keel_low_rank {
    int64_t rank; /* KEEL_INT_NULL: none */
    double alpha; /* NAN: the rank */
} keel_low_rank;

#define KEEL_LOW_RANK_FIELDS(args, member)                                                         \
    { .key = "lora_rank",                                                                          \
      .kind = KEEL_FIELD_INT,                                                                      \
      .offset = offsetof(args, member.rank),                                                       \
      .dflt = "null",                                                                              \
      .min = 1,                                                                                    \
      .max = 1 << 20,                                                                              \
      .help = "train a product of two matrices of this rank instead of the kernel" },              \
    {                                                                                              \
        .key = "lora_alpha", .kind = KEEL_FIELD_FLOAT, .offset = offsetof(args, member.alpha),     \
        .dflt = "null", .min = -1e30, .max = 1e30,                                                 \
        .help = "the product counts times this over its rank (default: the rank)"                  \
    }

static inline bool keel_low_rank_given(const keel_low_rank *l)
{
    return l->rank != KEEL_INT_NULL;
}
/* What the product is multiplied by; 0: there is none. */
double keel_low_rank_scale(const keel_low_rank *l);
/* Declares the two matrices that belong to a kernel [sums.., more.., columns]: [sums.., more..,
 * rank] and [rank, columns]. pair: both, the first with its n_sums first dims joined, and its last
 * ones, as ops see it. */
keel_status keel_low_rank_declare(keel_emit *e, const keel_low_rank *l,
                                  const keel_weight_decl *kernel, int n_sums, keel_weights pair[2]);
/* Adds their product to *y [places.., more columns], which the layer has made by `op` of the value
 * x [places.., sums] and of the kernel as a matrix. */
keel_status keel_low_rank_add(keel_emit *e, const keel_low_rank *l, const keel_op *op,
                              const keel_weights pair[2], keel_value x, keel_value *y);
/* The same for a layer that has made x of its input and the first matrix itself. */
keel_status keel_low_rank_add_second(keel_emit *e, const keel_low_rank *l,
                                     const keel_weights pair[2], keel_value x, keel_value *y);
/* The same for a layer that has made y of the transposed kernel. */
keel_status keel_low_rank_add_back(keel_emit *e, const keel_low_rank *l, const keel_weights pair[2],
                                   keel_value x, keel_value *y);
/* Takes out of a config what is not given, as Keras does. */
keel_status keel_low_rank_config(const keel_low_rank *l, json_t *config);

#endif
