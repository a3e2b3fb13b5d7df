/* Training loops of one's own, for tests: the programs of golden/make_loops.py, whose arithmetic is
 * repeated here, and short forms for steps. */
#ifndef TESTS_LOOPS_H
#define TESTS_LOOPS_H
#include "must.h"

enum { ROWS = 230, BATCH = 12, STEPS = 20 };
enum { MODELS = 2, INPUTS = 3, FUNCTIONS = 2, LOSSES = 2, LOOPS = 6 };

#define UNITS(n) KEEL_ARGS(KEEL_ARG_INT("units", n))
#define POOL(size, step)                                                                           \
    KEEL_ARGS(KEEL_ARG_INTS("pool_size", size, size), KEEL_ARG_INTS("strides", step, step),        \
              KEEL_ARG_STR("padding", "same"))
#define LEAKY KEEL_ARGS(KEEL_ARG_FLOAT("negative_slope", 0.25))
#define CONV(n, size, step, how)                                                                   \
    KEEL_ARGS(KEEL_ARG_INT("filters", n), KEEL_ARG_INTS("kernel_size", size, size),                \
              KEEL_ARG_INTS("strides", step, step), KEEL_ARG_STR("padding", how))
#define ADAM(x)                                                                                    \
    KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", x), KEEL_ARG_FLOAT("beta_1", 0.875),                 \
              KEEL_ARG_FLOAT("beta_2", 0.9990234375), KEEL_ARG_FLOAT("epsilon", 0x1p-20))
#define FROM_LOGITS KEEL_ARGS(KEEL_ARG_BOOL("from_logits", true))

typedef struct loop {
    keel_dtype dtype;
    keel_model *model[MODELS]; /* the golden weights are those of the first n_golden */
    int n_golden;
    keel_tensor rows[INPUTS];
    keel_data_field input[INPUTS];
    int n_input;
    keel_step step[FUNCTIONS];
    const char *loss[FUNCTIONS][LOSSES]; /* which each step returns, in the order of the golden */
} loop;

typedef struct loop_case {
    const char *golden;
    void (*create)(loop *l);
    loop how;
} loop_case;
extern const loop_case loops[LOOPS];

/* Number i of a tensor; rows made by arithmetic, and some of them, which stay where they are; first
 * weights of a model, counted on through several models. */
void loop_put(const keel_tensor *t, int64_t i, double x);
double loop_number(const keel_tensor *t, int64_t i);
keel_tensor loop_rows(keel_dtype dtype, const keel_shape *row, int64_t seed);
keel_tensor loop_part(const keel_tensor *t, int64_t first, int64_t n);
void loop_fill(keel_model *m, int first);

/* A Sequential model, and a layer of it. */
keel_model *loop_net(keel_dtype dtype, const char *name, const char *input);
void loop_add(keel_model *m, const char *layer, const keel_arg *args);

/* In a step: an operation on a value, on two, on a value and a number; an input; a model. */
keel_traced loop_call(keel_trace *t, const char *op, const keel_arg *args, keel_traced x);
keel_traced loop_call2(keel_trace *t, const char *op, keel_traced a, keel_traced b);
keel_traced loop_with(keel_trace *t, const char *op, keel_traced x, double number);
keel_traced loop_input(keel_trace *t, const char *name);
keel_traced loop_model(keel_trace *t, keel_model *m, bool training, keel_traced x);
/* Gradients of some terms for a model, and an optimizer for them. */
void loop_learn(keel_trace *t, const keel_term *terms, int n, keel_model *m,
                const keel_apply *apply);
/* The cross-entropy of what the discriminator says to some images, if they all have that label. */
keel_scalar loop_judge(keel_trace *t, const loop *l, keel_traced images, const char *label);

void loop_free(loop *l);
keel_function *loop_function(loop *l, int k);

/* The step of the Siamese network and of the discriminator; what makes their models and rows. */
keel_status loop_compare(void *context, keel_trace *t);
keel_status loop_discriminate(void *context, keel_trace *t);
void loop_create_gan(loop *l);
void loop_create_siamese(loop *l);

#endif
