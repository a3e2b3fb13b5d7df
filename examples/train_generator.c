/* Train from a generator: a callback that makes its rows, 29 or fewer at a time, 500 in all. It can
 * begin again (reset), so it serves every epoch; the short yields are trained as they are. */
#include <keel/keel.h>
#include <math.h>
#include <stdio.h>

enum { ROWS = 500, YIELD = 29 };

typedef struct wave {
    int64_t at; /* the next row */
} wave;

static keel_status next(void *context, void *x, void *y, float *weight, int64_t capacity,
                        int64_t *rows)
{
    wave *w = context;
    (void)weight;
    if (w->at == ROWS) return KEEL_END;
    int64_t n = ROWS - w->at < capacity ? ROWS - w->at : capacity;
    for (int64_t i = 0; i < n; i++) {
        const float t = (float)((w->at + i) * 193 % ROWS) / ROWS * 6 - 3;
        ((float *)x)[i] = t;
        ((float *)y)[i] = sinf(t);
    }
    w->at += n;
    *rows = n;
    return KEEL_OK;
}

static keel_status reset(void *context)
{
    ((wave *)context)->at = 0;
    return KEEL_OK;
}

static keel_status build(keel_model **out)
{
    static const struct {
        int64_t units;
        const char *activation;
    } layers[] = { { 64, "tanh" }, { 64, "tanh" }, { 1, "linear" } };
    keel_model *m;
    keel_status s = keel_model_create(&m, "wave", KEEL_FLOAT32, 3);
    if (s < 0) return s;
    s = keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 1)));
    for (int i = 0; i < 3 && s >= 0; i++)
        s = keel_model_add(m, "Dense",
                           KEEL_ARGS(KEEL_ARG_INT("units", layers[i].units),
                                     KEEL_ARG_STR("activation", layers[i].activation)));
    if (s >= 0)
        s = keel_model_compile(
            m, &(keel_compile){
                   KEEL_COMPILE,
                   .optimizer = { "adam", KEEL_ARGS(KEEL_ARG_FLOAT("learning_rate", 0.01)) },
                   .loss = { { "mse" } }, .metrics = { { "mae" } } });
    if (s < 0)
        keel_model_destroy(m);
    else
        *out = m;
    return s;
}

int main(void)
{
    wave w = { 0 };
    keel_model *m = NULL;
    keel_dataset *data = NULL;
    keel_strategy *devices = NULL;
    keel_history history = { 0 };
    const keel_generator g = {
        .size = sizeof g,
        .context = &w,
        .x_shape = { 1, { 1 } },
        .y_shape = { 1, { 1 } },
        .has_y = true,
        .max_rows = YIELD,
        .rows = ROWS,
        .name = "wave",
        .next = next,
        .reset = reset,
    };
    const keel_fit_options options = { KEEL_FIT_OPTIONS, .epochs = 30 };
    keel_status s = build(&m);
    if (s >= 0) s = keel_dataset_from_generator(&data, &g);
    if (s >= 0) s = keel_strategy_create(&devices, "cpu:0-1");
    if (s >= 0) s = keel_fit(m, devices, data, &options, &history);
    if (s < 0)
        fprintf(stderr, "train_generator: %s\n", keel_error());
    else
        for (int64_t e = 0; e < history.epochs; e += 10)
            printf("epoch %2d  %s %.5f\n", (int)e + 1, history.name[0],
                   history.value[e * history.count]);
    if (s >= 0)
        printf("%d steps, %d rows; the last step of an epoch has %d\n", (int)history.steps,
               (int)history.rows, (int)history.last_rows);
    keel_history_free(&history);
    keel_strategy_destroy(devices);
    keel_dataset_destroy(data);
    keel_model_destroy(m);
    return s < 0;
}
