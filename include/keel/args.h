/* Arguments by name, with Keras's names. Included by <keel/model.h>. */
#ifndef KEEL_ARGS_H
#define KEEL_ARGS_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One argument of a layer, optimizer, loss or metric: Keras's name and a typed value. */
typedef enum keel_arg_kind {
    KEEL_ARG_IS_INT,
    KEEL_ARG_IS_FLOAT,
    KEEL_ARG_IS_BOOL,
    KEEL_ARG_IS_STR,  /* text; NULL means null */
    KEEL_ARG_IS_INTS, /* a tuple */
    KEEL_ARG_IS_JSON, /* any value, as JSON text */
} keel_arg_kind;

enum { KEEL_ARG_INTS_MAX = 8 };

typedef struct keel_arg {
    const char *key; /* NULL ends a list */
    keel_arg_kind kind;
    int64_t number; /* INT, BOOL; count of INTS */
    double real;
    const char *text; /* STR, JSON */
    int64_t ints[KEEL_ARG_INTS_MAX];
} keel_arg;

/* keel_model_add(m, "Conv2D", KEEL_ARGS(KEEL_ARG_INT("filters", 32), KEEL_ARG_INTS("kernel_size",
 * 3, 3), KEEL_ARG_STR("activation", "relu")));   no arguments: NULL */
#define KEEL_ARGS(...) ((const keel_arg[]){ __VA_ARGS__, { .key = NULL } })
#define KEEL_ARG_INT(key_, n)                                                                      \
    {                                                                                              \
        .key = (key_), .kind = KEEL_ARG_IS_INT, .number = (n)                                      \
    }
#define KEEL_ARG_FLOAT(key_, x)                                                                    \
    {                                                                                              \
        .key = (key_), .kind = KEEL_ARG_IS_FLOAT, .real = (x)                                      \
    }
#define KEEL_ARG_BOOL(key_, b)                                                                     \
    {                                                                                              \
        .key = (key_), .kind = KEEL_ARG_IS_BOOL, .number = (b)                                     \
    }
#define KEEL_ARG_STR(key_, s)                                                                      \
    {                                                                                              \
        .key = (key_), .kind = KEEL_ARG_IS_STR, .text = (s)                                        \
    }
#define KEEL_ARG_JSON(key_, s)                                                                     \
    {                                                                                              \
        .key = (key_), .kind = KEEL_ARG_IS_JSON, .text = (s)                                       \
    }
#define KEEL_ARG_INTS(key_, ...)                                                                   \
    {                                                                                              \
        .key = (key_), .kind = KEEL_ARG_IS_INTS,                                                   \
        .number = sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t), .ints = {                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

#ifdef __cplusplus
}
#endif
#endif
