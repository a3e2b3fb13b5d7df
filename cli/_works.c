/* See works.h. */
#include "works.h"
#include "setup.h"
#include <string.h>

/* The convolutional network of Keras's example mnist_convnet. */
static keel_symbol mnist_cnn(keel_net *n, keel_symbol x)
{
    for (int64_t filters = 32; filters <= 64; filters *= 2) {
        x = keel_net_call(n, "Conv2D",
                          KEEL_ARGS(KEEL_ARG_INT("filters", filters),
                                    KEEL_ARG_INTS("kernel_size", 3, 3),
                                    KEEL_ARG_STR("activation", "relu")),
                          x);
        x = keel_net_call(n, "MaxPooling2D", KEEL_ARGS(KEEL_ARG_INTS("pool_size", 2, 2)), x);
    }
    x = keel_net_call(n, "Flatten", NULL, x);
    return keel_net_call(n, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5)), x);
}

static const keel_work works[] = {
    { "mlp", "784-512-512-10", "mlp", NULL, { 1, { 784 } }, 10, 16384, 64 },
    { "mnist-cnn", "28x28x1, 10 classes", NULL, mnist_cnn, { 3, { 28, 28, 1 } }, 10, 8192, 64 },
    { "resnet18",
      "224x224x3, 1000 classes",
      "resnet18",
      NULL,
      { 3, { 224, 224, 3 } },
      1000,
      64,
      16 },
    { "resnet50",
      "224x224x3, 1000 classes",
      "resnet50",
      NULL,
      { 3, { 224, 224, 3 } },
      1000,
      64,
      16 },
    { "mobilenetv2",
      "224x224x3, 1000 classes",
      "mobilenetv2",
      NULL,
      { 3, { 224, 224, 3 } },
      1000,
      64,
      16 },
    { "lstm",
      "200 of 20000 tokens, 2 classes",
      "lstm",
      NULL,
      { 1, { 200 } },
      1,
      1024,
      32,
      .vocabulary = 20000 },
    { "gpt",
      "256 of 65 tokens, 6 blocks of width 384",
      "gpt",
      NULL,
      { 1, { 256 } },
      65,
      192,
      12,
      .vocabulary = 65,
      .places = { 1, { 256 } } },
    { "transformer",
      "200 of 20000 tokens, 2 classes",
      "transformer",
      NULL,
      { 1, { 200 } },
      2,
      1024,
      32,
      .vocabulary = 20000 },
    { "unet",
      "128x128x3, 3 classes for each pixel",
      "unet",
      NULL,
      { 3, { 128, 128, 3 } },
      3,
      64,
      16,
      .places = { 2, { 128, 128 } } },
    { "efficientnetb0",
      "224x224x3, 1000 classes",
      "efficientnetb0",
      NULL,
      { 3, { 224, 224, 3 } },
      1000,
      64,
      16 },
    { "densenet121",
      "224x224x3, 1000 classes",
      "densenet121",
      NULL,
      { 3, { 224, 224, 3 } },
      1000,
      64,
      16 },
    { "convnexttiny",
      "224x224x3, 1000 classes",
      "convnexttiny",
      NULL,
      { 3, { 224, 224, 3 } },
      1000,
      64,
      16 },
    { "conv1d", "8000x1, 5 classes", "conv1d", NULL, { 2, { 8000, 1 } }, 5, 128, 32 },
};
enum { WORKS = sizeof works / sizeof *works };

int keel_work_find(const keel_work **out, const char *name)
{
    const char *names[WORKS + 1] = { NULL };
    for (int i = 0; i < WORKS; i++) {
        names[i] = works[i].name;
        if (!strcmp(name, works[i].name)) {
            *out = &works[i];
            return -1;
        }
    }
    const char *near = keel_nearest(name, names);
    if (near)
        return keel_complain(EXIT_USAGE, "there is no network '%s'; did you mean %s?", name, near);
    return keel_complain(EXIT_USAGE, "there is no network '%s'; see keel bench --help", name);
}

const keel_work *keel_work_at(int i)
{
    return i >= 0 && i < WORKS ? &works[i] : NULL;
}

keel_status keel_work_build(const keel_work *w, const char *policy, uint64_t seed, keel_model **out)
{
    keel_net n = { .input = w->input, .classes = w->classes, .vocabulary = w->vocabulary };
    keel_symbol x = 0;
    const char *head = "predictions";
    keel_symbol (*body)(keel_net *, keel_symbol) = w->build;
    for (int i = 0; !body && keel_architectures[i]; i++)
        if (!strcmp(keel_architectures[i]->name, w->architecture)) {
            body = keel_architectures[i]->build;
            head = keel_architectures[i]->head;
        }
    n.status = keel_model_create(&n.model, NULL, KEEL_FLOAT32, seed);
    *out = n.model;
    x = keel_net_input(&n);
    if (n.status >= 0) x = body(&n, x);
    if (head) x = keel_net_head(&n, head, x);
    if (n.status >= 0) n.status = keel_model_outputs(n.model, &x, 1);
    if (n.status >= 0 && policy) n.status = keel_model_set_dtype_policy(n.model, policy);
    if (n.status < 0) return n.status;
    /* With 0.01 the U-Net diverges, in any type and also in Keras. */
    return keel_model_compile(
        n.model,
        &(keel_compile){ KEEL_COMPILE,
                         .optimizer = { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.001),
                                                         KEEL_ARG_FLOAT("momentum", 0.9)) },
                         .loss = { { w->classes > 1 ? "sparse_categorical_crossentropy"
                                                    : "binary_crossentropy" } } });
}

/* Knuth's MMIX generator */
static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static int64_t count_of(const keel_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->shape.rank; i++) count *= t->shape.dim[i];
    return count;
}

static void draw_whole(uint64_t *state, const keel_tensor *t, int64_t below)
{
    int32_t *to = t->data;
    const int64_t count = count_of(t);
    for (int64_t i = 0; i < count; i++) to[i] = (int32_t)(draw(state) % (uint64_t)below);
}

static void draw_real(uint64_t *state, const keel_tensor *t)
{
    float *to = t->data;
    const int64_t count = count_of(t);
    for (int64_t i = 0; i < count; i++) to[i] = (float)(draw(state) >> 7) * 0x1p-24f;
}

static keel_shape with_rows(int64_t rows, const keel_shape *row)
{
    keel_shape s = { row->rank + 1, { rows } };
    for (int i = 0; i < row->rank; i++) s.dim[i + 1] = row->dim[i];
    return s;
}

keel_status keel_work_data(const keel_work *w, int64_t rows, uint64_t seed, keel_tensor *x,
                           keel_tensor *y)
{
    uint64_t state = 0x9e3779b97f4a7c15u + seed;
    const keel_shape each_x = with_rows(rows, &w->input), each_y = with_rows(rows, &w->places);
    keel_status s = keel_tensor_create(x, w->vocabulary ? KEEL_INT32 : KEEL_FLOAT32, &each_x);
    if (s >= 0) s = keel_tensor_create(y, KEEL_INT32, &each_y);
    if (s < 0) return s;
    if (w->vocabulary)
        draw_whole(&state, x, w->vocabulary);
    else
        draw_real(&state, x);
    draw_whole(&state, y, w->classes > 1 ? w->classes : 2);
    return KEEL_OK;
}
