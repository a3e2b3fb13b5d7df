/* Load a model and predict: load_predict [MODEL.keras], by default the one that train_arrays saved.
 * Any model of Keras does, whose input is rows of two numbers. */
#include <keel/keel.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    static float x[5][2] = {
        { 0, 0 }, { 0.5f, 0.2f }, { 0.9f, 0.9f }, { -0.3f, 0.1f }, { -1, 0.4f }
    };
    const keel_tensor points = { KEEL_FLOAT32, { 2, { 5, 2 } }, x };
    keel_model *m = NULL;
    keel_dataset *data = NULL;
    keel_strategy *devices = NULL;
    keel_tensor out = { 0 };
    char *summary = NULL;
    keel_status s = keel_model_load_without_state(&m, argc > 1 ? argv[1] : "circle.keras");
    if (s >= 0) s = keel_model_summary(m, &summary);
    if (s >= 0) s = keel_dataset_from_arrays(&data, &points, NULL, NULL);
    if (s >= 0) s = keel_strategy_create(&devices, NULL); /* one device a core */
    if (s >= 0) s = keel_predict(m, devices, data, NULL, &out);
    if (s < 0) {
        fprintf(stderr, "load_predict: %s\n", keel_error());
    } else {
        const float *p = out.data;
        const int64_t width = out.shape.dim[1];
        puts(summary);
        for (int i = 0; i < 5; i++)
            printf("(%4.1f, %4.1f) is inside with probability %.3f\n", (double)x[i][0],
                   (double)x[i][1], (double)p[i * width + width - 1]);
    }
    keel_tensor_free(&out);
    keel_model_summary_free(summary);
    keel_strategy_destroy(devices);
    keel_dataset_destroy(data);
    keel_model_destroy(m);
    return s < 0;
}
