/* See loops.h. */
#include "loops.h"
#include <math.h>

/* ---- rows and models ------------------------------------------------------------------------- */

void loop_put(const keel_tensor *t, int64_t i, double x)
{
    if (t->dtype == KEEL_FLOAT64)
        ((double *)t->data)[i] = x;
    else if (t->dtype == KEEL_FLOAT32)
        ((float *)t->data)[i] = (float)x;
    else
        ((int32_t *)t->data)[i] = (int32_t)x;
}

double loop_number(const keel_tensor *t, int64_t i)
{
    return t->dtype == KEEL_FLOAT64 ? ((double *)t->data)[i] : (double)((float *)t->data)[i];
}

keel_tensor loop_rows(keel_dtype dtype, const keel_shape *row, int64_t seed)
{
    keel_tensor t;
    keel_shape shape = { .rank = row->rank + 1, .dim = { ROWS } };
    int64_t size = 1;
    for (int k = 0; k < row->rank; k++) size *= shape.dim[k + 1] = row->dim[k];
    must(keel_tensor_create(&t, dtype, &shape));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < size; k++)
            loop_put(&t, i * size + k,
                     (double)((i * 131 + k * 37 + i * k * 7 + seed * 59) % 256 - 128) / 128);
    return t;
}

/* Rows [first, first + n) of a tensor, which they point into. */
keel_tensor loop_part(const keel_tensor *t, int64_t first, int64_t n)
{
    keel_tensor part = *t;
    const int64_t size = t->dtype == KEEL_FLOAT64 ? 8 : 4;
    int64_t row = size;
    for (int k = 1; k < t->shape.rank; k++) row *= t->shape.dim[k];
    part.shape.dim[0] = n;
    part.data = (char *)t->data + first * row;
    return part;
}

/* Weights by number, counted on through several models. */
void loop_fill(keel_model *m, int first)
{
    for (int w = 0; w < keel_model_weight_count(m); w++) {
        keel_tensor t;
        const char *name = keel_model_weight_name(m, w);
        must(keel_model_get_weight(m, name, &t));
        int64_t n = 1;
        for (int k = 0; k < t.shape.rank; k++) n *= t.shape.dim[k];
        for (int64_t i = 0; i < n; i++)
            loop_put(&t, i, (double)((i * 7919 + 131 * (first + w)) % 1021 - 510) / 1024);
        must(keel_model_set_weight(m, name, &t));
        keel_tensor_free(&t);
    }
}

keel_model *loop_net(keel_dtype dtype, const char *name, const char *input)
{
    keel_model *m;
    must(keel_model_create(&m, name, dtype, 0));
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_JSON("shape", input))));
    return m;
}

void loop_add(keel_model *m, const char *layer, const keel_arg *args)
{
    must(keel_model_add(m, layer, args));
}

static keel_model *classifier(keel_dtype dtype, const char *name, int filters, bool normalized)
{
    keel_model *m = loop_net(dtype, name, "[8, 8, 1]");
    loop_add(m, "Conv2D", CONV(filters, 3, 2, "valid"));
    loop_add(m, "LeakyReLU", LEAKY);
    if (normalized) loop_add(m, "BatchNormalization", NULL);
    loop_add(m, "Flatten", NULL);
    loop_add(m, "Dense", UNITS(5));
    return m;
}

/* ---- loops ----------------------------------------------------------------------------------- */

keel_traced loop_call(keel_trace *t, const char *op, const keel_arg *args, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_call(t, op, args, NULL, &x, 1, &y);
    return y;
}

keel_traced loop_call2(keel_trace *t, const char *op, keel_traced a, keel_traced b)
{
    keel_traced y = -1;
    keel_trace_call(t, op, NULL, NULL, (keel_traced[]){ a, b }, 2, &y);
    return y;
}

/* op(x, number) */
keel_traced loop_with(keel_trace *t, const char *op, keel_traced x, double number)
{
    keel_traced y = -1;
    keel_trace_call(t, op, NULL, KEEL_ARGS(KEEL_ARG_FLOAT("x2", number)), &x, 1, &y);
    return y;
}

keel_traced loop_input(keel_trace *t, const char *name)
{
    keel_traced x = -1;
    keel_trace_input(t, name, &x);
    return x;
}

keel_traced loop_model(keel_trace *t, keel_model *m, bool training, keel_traced x)
{
    keel_traced y = -1;
    keel_trace_model(t, m, training, &x, 1, &y);
    return y;
}

void loop_learn(keel_trace *t, const keel_term *terms, int n, keel_model *m,
                const keel_apply *apply)
{
    keel_gradients g = -1;
    keel_trace_gradients(t, terms, n, &(keel_watched){ m }, 1, &g);
    keel_trace_apply(t, g, apply);
}

static void create_distillation(loop *l)
{
    l->model[0] = classifier(l->dtype, "student", 3, true);
    l->model[1] = classifier(l->dtype, "teacher", 6, false);
    l->n_golden = 1;
    loop_fill(l->model[0], 0);
    loop_fill(l->model[1], 0);
    l->n_input = 2;
    l->rows[0] = loop_rows(l->dtype, KEEL_DIMS(8, 8, 1), 1);
    must(keel_tensor_create(&l->rows[1], KEEL_INT32, KEEL_DIMS(ROWS)));
    for (int64_t i = 0; i < ROWS; i++) loop_put(&l->rows[1], i, (double)(i * 7 % 5));
    l->input[0] = (keel_data_field){ "x", l->dtype, *KEEL_DIMS(8, 8, 1) };
    l->input[1] = (keel_data_field){ "y", KEEL_INT32, { 0 } };
}

static keel_status distill(void *context, keel_trace *t)
{
    const loop *l = context;
    const double alpha = 0.25, temperature = 3;
    keel_scalar own = -1, distilled = -1;
    const keel_traced x = loop_input(t, "x"), y = loop_input(t, "y");
    const keel_traced taught = loop_model(t, l->model[1], false, x),
                      p = loop_model(t, l->model[0], true, x);
    keel_trace_loss(t, &(keel_named){ "SparseCategoricalCrossentropy", FROM_LOGITS }, y, p,
                    KEEL_UNWEIGHTED, &own);
    keel_trace_loss(t, &(keel_named){ "KLDivergence" },
                    loop_call(t, "Softmax", NULL, loop_with(t, "ops.Divide", taught, temperature)),
                    loop_call(t, "Softmax", NULL, loop_with(t, "ops.Divide", p, temperature)),
                    KEEL_UNWEIGHTED, &distilled);
    loop_learn(
        t, (keel_term[]){ { own, alpha }, { distilled, (1 - alpha) * temperature * temperature } },
        2, l->model[0], &(keel_apply){ { "adam", ADAM(0.0078125) } });
    keel_trace_return_scalar(t, "own", own);
    return keel_trace_return_scalar(t, "distilled", distilled);
}

void loop_create_gan(loop *l)
{
    keel_model *g = loop_net(l->dtype, "generator", "[3]");
    loop_add(g, "Dense", UNITS(64));
    loop_add(g, "LeakyReLU", LEAKY);
    loop_add(g, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", 4, 4, 4)));
    loop_add(g, "Conv2DTranspose", CONV(4, 4, 2, "same"));
    loop_add(g, "LeakyReLU", LEAKY);
    loop_add(g, "Conv2D",
             KEEL_ARGS(KEEL_ARG_INT("filters", 1), KEEL_ARG_INTS("kernel_size", 3, 3),
                       KEEL_ARG_STR("padding", "same"), KEEL_ARG_STR("activation", "sigmoid")));
    keel_model *d = loop_net(l->dtype, "discriminator", "[8, 8, 1]");
    loop_add(d, "Conv2D", CONV(6, 3, 2, "same"));
    loop_add(d, "LeakyReLU", LEAKY);
    loop_add(d, "GlobalMaxPooling2D", NULL);
    loop_add(d, "Dense", UNITS(1));
    l->model[0] = g;
    l->model[1] = d;
    l->n_golden = 2;
    loop_fill(g, 0);
    loop_fill(d, 0);
    l->n_input = 3;
    l->rows[0] = loop_rows(l->dtype, KEEL_DIMS(8, 8, 1), 2);
    l->rows[1] = loop_rows(l->dtype, KEEL_DIMS(3), 3);
    l->rows[2] = loop_rows(l->dtype, KEEL_DIMS(3), 4);
    l->input[0] = (keel_data_field){ "real", l->dtype, *KEEL_DIMS(8, 8, 1) };
    l->input[1] = (keel_data_field){ "z1", l->dtype, *KEEL_DIMS(3) };
    l->input[2] = (keel_data_field){ "z2", l->dtype, *KEEL_DIMS(3) };
}

/* The cross-entropy of what the discriminator says to some images, if they all have that label. */
keel_scalar loop_judge(keel_trace *t, const loop *l, keel_traced images, const char *label)
{
    keel_scalar loss = -1;
    const keel_traced p = loop_model(t, l->model[1], true, images);
    const keel_traced labels = loop_call(t, label, NULL, loop_call(t, "ops.StopGradient", NULL, p));
    keel_trace_loss(t, &(keel_named){ "BinaryCrossentropy", FROM_LOGITS }, labels, p,
                    KEEL_UNWEIGHTED, &loss);
    return loss;
}

keel_status loop_discriminate(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_scalar fake =
        loop_judge(t, l, loop_model(t, l->model[0], true, loop_input(t, "z1")), "ops.OnesLike");
    const keel_scalar real = loop_judge(t, l, loop_input(t, "real"), "ops.ZerosLike");
    loop_learn(t, (keel_term[]){ { fake, 0.5 }, { real, 0.5 } }, 2, l->model[1],
               &(keel_apply){ { "adam", ADAM(0.00390625) } });
    keel_trace_return_scalar(t, "fake", fake);
    return keel_trace_return_scalar(t, "real", real);
}

static keel_status generate(void *context, keel_trace *t)
{
    const loop *l = context;
    const keel_scalar g =
        loop_judge(t, l, loop_model(t, l->model[0], true, loop_input(t, "z2")), "ops.ZerosLike");
    loop_learn(t, &(keel_term){ g, 1 }, 1, l->model[0],
               &(keel_apply){ { "RMSprop", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.001953125),
                                                     KEEL_ARG_FLOAT("rho", 0.875),
                                                     KEEL_ARG_FLOAT("epsilon", 0x1p-20)) } });
    return keel_trace_return_scalar(t, "g", g);
}

void loop_create_siamese(loop *l)
{
    keel_model *m = loop_net(l->dtype, "tower", "[6]");
    loop_add(m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 8), KEEL_ARG_STR("activation", "tanh")));
    loop_add(m, "Dense", UNITS(4));
    l->model[0] = m;
    l->n_golden = 1;
    loop_fill(m, 0);
    l->n_input = 3;
    l->rows[0] = loop_rows(l->dtype, KEEL_DIMS(6), 5);
    l->rows[1] = loop_rows(l->dtype, KEEL_DIMS(6), 6);
    must(keel_tensor_create(&l->rows[2], l->dtype, KEEL_DIMS(ROWS, 1)));
    for (int64_t i = 0; i < ROWS; i++) loop_put(&l->rows[2], i, i % 3 == 0);
    l->input[0] = (keel_data_field){ "a", l->dtype, *KEEL_DIMS(6) };
    l->input[1] = (keel_data_field){ "b", l->dtype, *KEEL_DIMS(6) };
    l->input[2] = (keel_data_field){ "y", l->dtype, *KEEL_DIMS(1) };
}

keel_status loop_compare(void *context, keel_trace *t)
{
    const loop *l = context;
    keel_scalar loss = -1;
    const keel_traced a = loop_model(t, l->model[0], true, loop_input(t, "a"));
    const keel_traced b = loop_model(t, l->model[0], true, loop_input(t, "b")),
                      y = loop_input(t, "y");
    const keel_traced sum =
        loop_call(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INT("axis", 1), KEEL_ARG_BOOL("keepdims", true)),
                  loop_call(t, "ops.Square", NULL, loop_call2(t, "ops.Subtract", a, b)));
    const keel_traced d = loop_call(t, "ops.Sqrt", NULL, loop_with(t, "ops.Maximum", sum, 1e-7));
    const keel_traced gap = loop_with(t, "ops.Add", loop_call(t, "ops.Negative", NULL, d), 1);
    const keel_traced apart = loop_call(t, "ops.Square", NULL, loop_with(t, "ops.Maximum", gap, 0));
    const keel_traced alike = loop_with(t, "ops.Add", loop_call(t, "ops.Negative", NULL, y), 1);
    const keel_traced both = loop_call2(
        t, "ops.Add", loop_call2(t, "ops.Multiply", alike, loop_call(t, "ops.Square", NULL, d)),
        loop_call2(t, "ops.Multiply", y, apart));
    keel_trace_mean(t, both, KEEL_UNWEIGHTED, &loss);
    loop_learn(t, &(keel_term){ loss, 1 }, 1, l->model[0],
               &(keel_apply){ { "SGD", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.0625),
                                                 KEEL_ARG_FLOAT("momentum", 0.875),
                                                 KEEL_ARG_FLOAT("clipnorm", 0.25)) } });
    return keel_trace_return_scalar(t, "loss", loss);
}

/* A critic and its rows. */
static void judge_by(loop *l, keel_model *critic)
{
    l->model[0] = critic;
    l->n_golden = 1;
    l->n_input = 3;
    l->rows[0] = loop_rows(l->dtype, KEEL_DIMS(8, 8, 1), 7);
    l->rows[1] = loop_rows(l->dtype, KEEL_DIMS(8, 8, 1), 8);
    l->rows[2] = loop_rows(l->dtype, KEEL_DIMS(1, 1, 1), 9);
    for (int64_t i = 0; i < ROWS; i++)
        loop_put(&l->rows[2], i, (loop_number(&l->rows[2], i) + 1) / 2);
    l->input[0] = (keel_data_field){ "real", l->dtype, *KEEL_DIMS(8, 8, 1) };
    l->input[1] = (keel_data_field){ "fake", l->dtype, *KEEL_DIMS(8, 8, 1) };
    l->input[2] = (keel_data_field){ "mix", l->dtype, *KEEL_DIMS(1, 1, 1) };
}

static void create_penalty(loop *l)
{
    keel_model *m = loop_net(l->dtype, "critic", "[8, 8, 1]");
    loop_add(m, "ZeroPadding2D", KEEL_ARGS(KEEL_ARG_JSON("padding", "[[1, 0], [2, 1]]")));
    loop_add(m, "Conv2D", CONV(4, 3, 2, "same"));
    loop_add(m, "LeakyReLU", LEAKY);
    loop_add(m, "Conv2D", CONV(5, 3, 1, "valid"));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "silu")));
    loop_add(m, "Flatten", NULL);
    loop_add(m, "Dense", UNITS(3));
    loop_add(m, "ReLU", NULL);
    loop_add(m, "Dense", UNITS(4));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "elu")));
    loop_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0)));
    loop_add(m, "Dense", UNITS(1));
    loop_fill(m, 0);
    judge_by(l, m);
}

static void create_penalty_2(loop *l)
{
    keel_model *m = loop_net(l->dtype, "critic", "[8, 8, 1]");
    keel_tensor variance;
    loop_add(m, "Conv2D", CONV(4, 3, 1, "valid"));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "gelu")));
    loop_add(m, "AveragePooling2D", POOL(3, 2));
    loop_add(m, "Conv2DTranspose", CONV(3, 3, 2, "same"));
    loop_add(m, "BatchNormalization", KEEL_ARGS(KEEL_ARG_BOOL("trainable", false)));
    loop_add(m, "PReLU", KEEL_ARGS(KEEL_ARG_INTS("shared_axes", 1, 2)));
    loop_add(m, "Flatten", NULL);
    loop_add(m, "Dense", UNITS(32));
    loop_add(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", 4, 4, 2)));
    loop_add(m, "MaxPooling2D", POOL(3, 2));
    loop_add(m, "UpSampling2D", NULL);
    loop_add(m, "LayerNormalization", NULL);
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "selu")));
    loop_add(m, "Flatten", NULL);
    loop_add(m, "Dense",
             KEEL_ARGS(KEEL_ARG_INT("units", 4), KEEL_ARG_STR("activation", "softmax")));
    loop_add(m, "Dense", UNITS(1));
    loop_fill(m, 0);
    must(keel_model_get_weight(m, "batch_normalization/moving_variance", &variance));
    for (int64_t i = 0; i < variance.shape.dim[0]; i++)
        loop_put(&variance, i, fabs(loop_number(&variance, i)) + 0.5);
    must(keel_model_set_weight(m, "batch_normalization/moving_variance", &variance));
    keel_tensor_free(&variance);
    judge_by(l, m);
}

static void create_penalty_3(loop *l)
{
    keel_model *m = loop_net(l->dtype, "critic", "[8, 8, 1]");
    loop_add(m, "Reshape", KEEL_ARGS(KEEL_ARG_INTS("target_shape", 4, 4, 4, 1)));
    loop_add(m, "Conv3D",
             KEEL_ARGS(KEEL_ARG_INT("filters", 2), KEEL_ARG_INTS("kernel_size", 3, 3, 3),
                       KEEL_ARG_STR("padding", "same")));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "softsign")));
    loop_add(m, "Flatten", NULL);
    loop_add(m, "Dense", UNITS(6));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "relu6")));
    loop_add(m, "Dense", UNITS(6));
    loop_add(m, "RMSNormalization", KEEL_ARGS(KEEL_ARG_FLOAT("epsilon", 0.0009765625)));
    loop_add(m, "Rescaling",
             KEEL_ARGS(KEEL_ARG_FLOAT("scale", 0.5), KEEL_ARG_FLOAT("offset", 0.25)));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "hard_sigmoid")));
    loop_add(m, "Dense", UNITS(5));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "log_sigmoid")));
    loop_add(m, "UnitNormalization", NULL);
    loop_add(m, "Dense", UNITS(4));
    loop_add(m, "Activation", KEEL_ARGS(KEEL_ARG_STR("activation", "log_softmax")));
    loop_add(m, "Dense", UNITS(1));
    loop_fill(m, 0);
    judge_by(l, m);
}

static keel_status penalize(void *context, keel_trace *t)
{
    const loop *l = context;
    keel_scalar penalty = -1, of_fake = -1, of_real = -1;
    keel_traced slope = -1;
    const keel_traced real = loop_input(t, "real"), fake = loop_input(t, "fake"),
                      mix = loop_input(t, "mix");
    const keel_traced rest = loop_with(t, "ops.Add", loop_call(t, "ops.Negative", NULL, mix), 1);
    const keel_traced between = loop_call2(t, "ops.Add", loop_call2(t, "ops.Multiply", real, mix),
                                           loop_call2(t, "ops.Multiply", fake, rest));
    keel_trace_gradient_of(t, loop_model(t, l->model[0], true, between), between, &slope);
    const keel_traced size = loop_call(t, "ops.Sum", KEEL_ARGS(KEEL_ARG_INTS("axis", 1, 2, 3)),
                                       loop_call(t, "ops.Square", NULL, slope));
    const keel_traced norm = loop_call(t, "ops.Sqrt", NULL, loop_with(t, "ops.Add", size, 1e-12));
    keel_trace_mean(t, loop_call(t, "ops.Square", NULL, loop_with(t, "ops.Subtract", norm, 1)),
                    KEEL_UNWEIGHTED, &penalty);
    keel_trace_mean(t, loop_model(t, l->model[0], true, fake), KEEL_UNWEIGHTED, &of_fake);
    keel_trace_mean(t, loop_model(t, l->model[0], true, real), KEEL_UNWEIGHTED, &of_real);
    loop_learn(t, (keel_term[]){ { of_fake, 1 }, { of_real, -1 }, { penalty, 10 } }, 3, l->model[0],
               &(keel_apply){ { "adam", ADAM(0.00390625) } });
    return keel_trace_return_scalar(t, "penalty", penalty);
}

const loop_case loops[LOOPS] = {
    { "distillation",
      create_distillation,
      { .step = { distill }, .loss = { { "own", "distilled" } } } },
    { "gan",
      loop_create_gan,
      { .step = { loop_discriminate, generate }, .loss = { { "fake", "real" }, { "g" } } } },
    { "siamese", loop_create_siamese, { .step = { loop_compare }, .loss = { { "loss" } } } },
    { "penalty", create_penalty, { .step = { penalize }, .loss = { { "penalty" } } } },
    { "penalty_2", create_penalty_2, { .step = { penalize }, .loss = { { "penalty" } } } },
    { "penalty_3", create_penalty_3, { .step = { penalize }, .loss = { { "penalty" } } } },
};

void loop_free(loop *l)
{
    for (int i = 0; i < MODELS; i++) keel_model_destroy(l->model[i]);
    for (int i = 0; i < INPUTS; i++) keel_tensor_free(&l->rows[i]);
}

keel_function *loop_function(loop *l, int k)
{
    keel_function *f;
    must(keel_function_create(&f, &(keel_function_options){ KEEL_FUNCTION_OPTIONS,
                                                            .step = l->step[k], .context = l,
                                                            .dtype = l->dtype, .input = l->input,
                                                            .n_input = l->n_input }));
    return f;
}
