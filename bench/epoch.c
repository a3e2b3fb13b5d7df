/* bench_epoch: what an epoch costs whose last step is short.
 *
 * Steps of another row count have kernels of their own, prepared before step 1, so an epoch of
 * 1,031 rows at batch 64 should cost 1,031 / 1,024 of one of 1,024 and hardly more: seven rows read
 * and write all the weights. The two take turns, in a turn the fastest epoch counts (the first is
 * left out), and the median over the turns is printed; a line of JSON for each network. */
#include "keel/keel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WHOLE = 1024, TAIL = 7, IMAGE = 28 * 28, EPOCHS = 12, TURNS = 9 };
static float images[(WHOLE + TAIL) * IMAGE], labels[WHOLE + TAIL];

static void must(keel_status s)
{
    if (s >= 0) return;
    fprintf(stderr, "bench_epoch: %s\n", keel_error());
    exit(1);
}

typedef struct watch {
    double begin, fastest;
} watch;

static keel_status tell(void *context, const keel_moment *p)
{
    watch *w = context;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    const double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    if (p->epoch > 0 && (w->fastest == 0 || now - w->begin < w->fastest))
        w->fastest = now - w->begin;
    w->begin = now;
    return KEEL_OK;
}

static void add_dense(keel_model *m, int64_t units, const char *activation)
{
    must(keel_model_add(
        m, "Dense",
        KEEL_ARGS(KEEL_ARG_INT("units", units), KEEL_ARG_STR("activation", activation))));
}

static void mlp(keel_model *m)
{
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", IMAGE))));
    add_dense(m, 512, "relu");
    add_dense(m, 512, "relu");
}

static void mnist_cnn(keel_model *m)
{
    must(keel_model_add(m, "InputLayer", KEEL_ARGS(KEEL_ARG_INTS("shape", 28, 28, 1))));
    for (int64_t filters = 32; filters <= 64; filters *= 2) {
        must(keel_model_add(m, "Conv2D",
                            KEEL_ARGS(KEEL_ARG_INT("filters", filters),
                                      KEEL_ARG_INTS("kernel_size", 3, 3),
                                      KEEL_ARG_STR("activation", "relu"))));
        must(keel_model_add(m, "MaxPooling2D", NULL));
    }
    must(keel_model_add(m, "Flatten", NULL));
    must(keel_model_add(m, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", 0.5))));
}

static const struct {
    const char *name;
    void (*build)(keel_model *m);
    bool images;
} works[] = { { "mlp", mlp, false }, { "mnist-cnn", mnist_cnn, true } };

static double seconds(size_t work, int64_t rows, keel_strategy *s)
{
    keel_model *m;
    keel_dataset *d;
    watch w = { 0 };
    keel_tensor tx = { KEEL_FLOAT32, { 2, { rows, IMAGE } }, images };
    const keel_tensor ty = { KEEL_FLOAT32, { 1, { rows } }, labels };
    if (works[work].images) tx.shape = (keel_shape){ 4, { rows, 28, 28, 1 } };
    must(keel_model_create(&m, NULL, KEEL_FLOAT32, 1));
    works[work].build(m);
    add_dense(m, 10, "softmax");
    must(keel_model_compile(
        m, &(keel_compile){ KEEL_COMPILE,
                            .optimizer = { "sgd", KEEL_ARGS(KEEL_ARG_FLOAT("momentum", 0.9)) },
                            .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_dataset_from_arrays(&d, &tx, &ty, NULL));
    must(keel_fit(m, s, d,
                  &(keel_fit_options){ KEEL_FIT_OPTIONS, .batch_size = 64, .epochs = EPOCHS,
                                       .callbacks = KEEL_CALLBACKS(&(keel_callback){
                                           KEEL_CALLBACK, .context = &w, .on_epoch_end = tell }) },
                  NULL));
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    return w.fastest;
}

static int less(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int n_arg, char **arg)
{
    keel_strategy *s;
    for (int i = 0; i < (WHOLE + TAIL) * IMAGE; i++) images[i] = (float)(i % 251) / 251;
    for (int i = 0; i < WHOLE + TAIL; i++) labels[i] = (float)(i % 10);
    must(keel_strategy_create(&s, n_arg > 1 ? arg[1] : NULL));
    for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
        double part[TURNS];
        for (int i = 0; i < TURNS; i++) {
            part[i] = seconds(k, WHOLE, s);
            part[i] = seconds(k, WHOLE + TAIL, s) / part[i] * WHOLE / (WHOLE + TAIL);
        }
        qsort(part, TURNS, sizeof *part, less);
        printf("{\"work\": \"%s\", \"rows\": %d, \"of_its_rows\": %.4f, \"least\": %.4f, "
               "\"most\": %.4f}\n",
               works[k].name, WHOLE + TAIL, part[TURNS / 2], part[0], part[TURNS - 1]);
        fflush(stdout);
    }
    keel_strategy_destroy(s);
    return 0;
}
