/* bench_waits MODEL.keras FOLDER [EPOCHS]: which part of its time an epoch waits for rows, while a
 * model of images of 100x100 trains on a folder of images, on all cores, with the threads that the
 * input finds itself. A line of JSON for each epoch, of which the first one begins with a single
 * thread. */
#include "keel/keel.h"
#include <stdio.h>
#include <stdlib.h>

static void must(keel_status s)
{
    if (s >= 0) return;
    fprintf(stderr, "bench_waits: %s\n", keel_error());
    exit(1);
}

static keel_status tell(void *context, const keel_moment *p)
{
    (void)context;
    printf("{\"epoch\": %lld, \"steps\": %lld, \"seconds\": %.3f, \"waits_percent\": %.4f}\n",
           (long long)p->epoch + 1, (long long)p->step, p->seconds, 100 * p->waited / p->seconds);
    fflush(stdout);
    return KEEL_OK;
}

int main(int argc, char **argv)
{
    keel_model *m;
    keel_dataset *d;
    keel_strategy *s;
    keel_dataset_options o = KEEL_DATASET_OPTIONS;
    o.height = o.width = 100;
    if (argc < 3) {
        fputs("usage: bench_waits MODEL.keras FOLDER [EPOCHS]\n", stderr);
        return 2;
    }
    must(keel_model_load(&m, argv[1]));
    must(keel_model_compile(m,
                            &(keel_compile){ KEEL_COMPILE, .optimizer = { "adam" },
                                             .loss = { { "sparse_categorical_crossentropy" } } }));
    must(keel_dataset_open(&d, argv[2], &o));
    must(keel_strategy_create(&s, NULL));
    must(keel_fit(
        m, s, d,
        &(keel_fit_options){
            KEEL_FIT_OPTIONS, .batch_size = 32, .epochs = argc > 3 ? atoi(argv[3]) : 3,
            .callbacks = KEEL_CALLBACKS(&(keel_callback){ KEEL_CALLBACK, .on_epoch_end = tell }) },
        NULL));
    keel_strategy_destroy(s);
    keel_dataset_destroy(d);
    keel_model_destroy(m);
    return 0;
}
