/* exact_step MODEL.keras X.npy Y.npy FOLDER float64|float32: outputs and one training step of a
 * model, for applications.py. In float64 rounding cannot hide a mistake: what Keras computes there
 * has to be equal to ten digits. The step is over all rows. Writes FOLDER/outputs.npy (of before
 * the step), FOLDER/N.npy for weight N after it, and prints the names of the weights in that order.
 */
#include "io/npy.h"
#include "keel/keel.h"
#include <stdio.h>
#include <string.h>

typedef struct paths {
    const char *model, *x, *y, *folder;
    keel_dtype dtype;
} paths;

typedef struct job {
    keel_model *m;
    keel_strategy *s;
    keel_dataset *data;
} job;

static keel_status write_outputs(const job *j, const keel_fit_options *options, const char *folder)
{
    char path[4096];
    keel_tensor outputs;
    KEEL_TRY(keel_predict(j->m, j->s, j->data, options, &outputs));
    snprintf(path, sizeof path, "%s/outputs.npy", folder);
    const keel_status s = keel_npy_write(path, &outputs);
    keel_tensor_free(&outputs);
    return s;
}

static keel_status write_weights(const keel_model *m, const char *folder)
{
    char path[4096];
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        KEEL_TRY(keel_model_get_weight(m, keel_model_weight_name(m, i), &t));
        snprintf(path, sizeof path, "%s/%d.npy", folder, i);
        const keel_status s = keel_npy_write(path, &t);
        keel_tensor_free(&t);
        if (s < 0) return s;
        printf("%s\n", keel_model_weight_name(m, i));
    }
    return KEEL_OK;
}

static keel_status run(job *j, const paths *p)
{
    keel_fit_options options = { KEEL_FIT_OPTIONS, .no_shuffle = true };
    KEEL_TRY(keel_strategy_create(&j->s, NULL));
    KEEL_TRY(keel_model_load(&j->m, p->model));
    KEEL_TRY(keel_model_set_dtype(j->m, p->dtype));
    KEEL_TRY(keel_dataset_from_npy(&j->data, p->x, p->y));
    options.batch_size = keel_dataset_rows(j->data);
    KEEL_TRY(write_outputs(j, &options, p->folder));
    KEEL_TRY(keel_fit(j->m, j->s, j->data, &options, NULL));
    return write_weights(j->m, p->folder);
}

int main(int argc, char **argv)
{
    const bool wide = argc == 6 && !strcmp(argv[5], "float64");
    if (!wide && (argc != 6 || strcmp(argv[5], "float32") != 0)) {
        fprintf(stderr, "exact_step MODEL.keras X.npy Y.npy FOLDER float64|float32\n");
        return 2;
    }
    job j = { 0 };
    const paths p = { argv[1], argv[2], argv[3], argv[4], wide ? KEEL_FLOAT64 : KEEL_FLOAT32 };
    const keel_status s = run(&j, &p);
    if (s < 0) fprintf(stderr, "exact_step: %s\n", keel_error());
    keel_dataset_destroy(j.data);
    keel_model_destroy(j.m);
    keel_strategy_destroy(j.s);
    return s < 0;
}
