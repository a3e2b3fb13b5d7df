/* gamma and beta of a normalization: the arguments that say whether they are there, their
 * initializers, regularizers and constraints. */
#ifndef KEEL_LAYERS_GAMMA_BETA_H
#define KEEL_LAYERS_GAMMA_BETA_H
#include "layers/layer.h"

/* The members of a layer's args, which is the type T below. */
#define KEEL_GAMMA_BETA                                                                            \
    bool center, scale;                                                                            \
    keel_object beta_initializer, gamma_initializer, beta_regularizer, gamma_regularizer,          \
        beta_constraint, gamma_constraint

#define KEEL_GAMMA_BETA_FIELDS(T)                                                                  \
    KEEL_BOOL(T, center, "true", "add beta"), KEEL_BOOL(T, scale, "true", "multiply by gamma"),    \
        KEEL_OBJECT(T, beta_initializer, "\"zeros\"", keel_initializer_find,                       \
                    "first values of beta"),                                                       \
        KEEL_OBJECT(T, gamma_initializer, "\"ones\"", keel_initializer_find,                       \
                    "first values of gamma"),                                                      \
        KEEL_OBJECT(T, beta_regularizer, "null", keel_regularizer_find, "of beta"),                \
        KEEL_OBJECT(T, gamma_regularizer, "null", keel_regularizer_find, "of gamma"),              \
        KEEL_OBJECT(T, beta_constraint, "null", keel_constraint_find, "of beta"),                  \
        KEEL_OBJECT(T, gamma_constraint, "null", keel_constraint_find, "of gamma")

/* Their declarations, of the shape given. */
#define KEEL_GAMMA(a, shape_)                                                                      \
    (keel_weight_decl)                                                                             \
    {                                                                                              \
        .name = "gamma", .shape = shape_, .initializer = &(a)->gamma_initializer,                  \
        .regularizer = &(a)->gamma_regularizer, .constraint = &(a)->gamma_constraint               \
    }
#define KEEL_BETA(a, shape_)                                                                       \
    (keel_weight_decl)                                                                             \
    {                                                                                              \
        .name = "beta", .shape = shape_, .initializer = &(a)->beta_initializer,                    \
        .regularizer = &(a)->beta_regularizer, .constraint = &(a)->beta_constraint                 \
    }

#endif
