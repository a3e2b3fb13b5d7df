/* Train on a pipeline: points in a plane, of which a filter leaves out those on the border, a map
 * adds noise that is another in every epoch, and a shuffle and batches follow. The result is the
 * same on any number of devices, although the filter makes the data a stream. */
#include <keel/keel.h>
#include <stdio.h>

enum { ROWS = 1000 };

static float x[ROWS][2];
static int32_t y[ROWS];

static keel_status off_border(void *context, const keel_tensor *in, bool *keep,
                              const keel_element_place *at)
{
    const float *p = in[0].data;
    const float r = p[0] * p[0] + p[1] * p[1];
    (void)context, (void)at;
    *keep = r < 0.6f || r > 0.7f;
    return KEEL_OK;
}

/* Field 0 is x, field 1 is y. */
static keel_status add_noise(void *context, const keel_tensor *in, keel_tensor *out,
                             const keel_element_place *at)
{
    const float *from = in[0].data;
    float *to = out[0].data;
    (void)context;
    for (uint32_t i = 0; i < 2; i++)
        to[i] = from[i] + 0.02f * (float)(keel_element_uniform(at, i) - 0.5);
    *(int32_t *)out[1].data = *(int32_t *)in[1].data;
    return KEEL_OK;
}

/* Each stage is made of the one before, which is then let go: the new one keeps what it needs. */
static keel_status pipeline(keel_dataset **d)
{
    const keel_filter filter = { .size = sizeof filter, .name = "off_border", .call = off_border };
    const keel_map noise = {
        .size = sizeof noise, .name = "noise", .call = add_noise, .random = true
    };
    keel_status s = KEEL_OK;
    for (int stage = 0; stage < 4 && s >= 0; stage++) {
        keel_dataset *next = NULL;
        if (stage == 0) s = keel_dataset_filter(&next, *d, &filter);
        if (stage == 1) s = keel_dataset_map(&next, *d, &noise);
        if (stage == 2) s = keel_dataset_shuffle(&next, *d, 200);
        if (stage == 3) s = keel_dataset_batch(&next, *d, 64, false);
        if (s < 0) break;
        keel_dataset_destroy(*d);
        *d = next;
    }
    return s;
}

static keel_status build(keel_model **out)
{
    keel_model *m;
    keel_status s = keel_model_create(&m, "circle", KEEL_FLOAT32, 1);
    if (s < 0) return s;
    s = keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 2)));
    if (s >= 0)
        s = keel_model_add(
            m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 32), KEEL_ARG_STR("activation", "relu")));
    if (s >= 0)
        s = keel_model_add(
            m, "Dense", KEEL_ARGS(KEEL_ARG_INT("units", 2), KEEL_ARG_STR("activation", "softmax")));
    if (s >= 0)
        s = keel_model_compile(
            m,
            &(keel_compile){
                KEEL_COMPILE,
                .optimizer = { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.01)) },
                .loss = { { "sparse_categorical_crossentropy" } }, .metrics = { { "accuracy" } } });
    if (s < 0)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

int main(void)
{
    keel_model *m = NULL;
    keel_dataset *data = NULL;
    keel_strategy *devices = NULL;
    keel_history history = { 0 };
    const keel_tensor points = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, x };
    const keel_tensor labels = { KEEL_INT32, { 1, { ROWS } }, y };
    for (int i = 0; i < ROWS; i++) { /* a grid, whose steps never meet */
        x[i][0] = (float)(i * 37 % 101) / 50 - 1;
        x[i][1] = (float)(i * 61 % 97) / 48 - 1;
        y[i] = x[i][0] * x[i][0] + x[i][1] * x[i][1] < 0.64f;
    }
    keel_status s = build(&m);
    if (s >= 0) s = keel_dataset_from_arrays(&data, &points, &labels, NULL);
    if (s >= 0) s = pipeline(&data);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0)
        s = keel_fit(m, devices, data, &(keel_fit_options){ KEEL_FIT_OPTIONS, .epochs = 20 },
                     &history);
    if (s >= 0)
        printf("%d epochs of %d rows, accuracy %.3f\n", (int)history.epochs,
               (int)(history.rows / history.epochs),
               history.value[(history.epochs - 1) * history.count + 1]);
    else
        fprintf(stderr, "train_pipeline: %s\n", keel_error());
    keel_history_free(&history);
    keel_strategy_destroy(devices);
    keel_dataset_destroy(data);
    keel_model_destroy(m);
    return s < 0;
}
