/* Train on arrays: points in a plane, inside or outside of a circle. 1,000 rows in steps of 64 over
 * two devices, so the last step has 40 rows; it counts exactly as it should. */
#include <keel/keel.h>
#include <stdio.h>

enum { ROWS = 1000 };

static float x[ROWS][2];
static int32_t y[ROWS];

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

static keel_status show(void *context, const keel_moment *p)
{
    (void)context;
    if ((p->epoch + 1) % 5 == 0)
        printf("epoch %2d  loss %.4f  accuracy %.4f\n", (int)p->epoch + 1, p->logs->value[0],
               p->logs->value[1]);
    return KEEL_OK;
}

int main(void)
{
    keel_model *m = NULL;
    keel_dataset *data = NULL;
    keel_strategy *devices = NULL;
    const keel_tensor points = { KEEL_FLOAT32, { 2, { ROWS, 2 } }, x };
    const keel_tensor labels = { KEEL_INT32, { 1, { ROWS } }, y };
    const keel_callback every_epoch = { KEEL_CALLBACK, .on_epoch_end = show };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .batch_size = 64, .epochs = 20,
                                       .callbacks = KEEL_CALLBACKS(&every_epoch) };
    for (int i = 0; i < ROWS; i++) { /* a grid, whose steps never meet */
        x[i][0] = (float)(i * 37 % 101) / 50 - 1;
        x[i][1] = (float)(i * 61 % 97) / 48 - 1;
        y[i] = x[i][0] * x[i][0] + x[i][1] * x[i][1] < 0.64f;
    }
    keel_status s = build(&m);
    if (s >= 0) s = keel_dataset_from_arrays(&data, &points, &labels, NULL);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0) s = keel_fit(m, devices, data, &options, NULL);
    if (s >= 0) s = keel_model_save(m, "circle.keras");
    if (s < 0)
        fprintf(stderr, "train_arrays: %s\n", keel_error());
    else
        puts("saved circle.keras");
    keel_strategy_destroy(devices);
    keel_dataset_destroy(data);
    keel_model_destroy(m);
    return s < 0;
}
