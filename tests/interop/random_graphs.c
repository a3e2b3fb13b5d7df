/* random_graphs FOLDER SEED COUNT POLICY: the models of so many random graphs as FOLDER/SEED.keras,
 * on which random_graphs.py compares Keel with the real Keras. No layer of theirs draws numbers
 * while it trains: Keras draws others. Biases of 0 and scales of 1 would hide mistakes, so every
 * weight is moved. Prints each graph as a user of Keras would write it. */
#include "random_graph.h"
#include <stdlib.h>

static keel_status shake_weights(keel_model *m)
{
    for (int i = 0; i < keel_model_weight_count(m); i++) {
        keel_tensor t;
        const char *name = keel_model_weight_name(m, i);
        KEEL_TRY(keel_model_get_weight(m, name, &t));
        float *value = t.data;
        const int64_t n = t.dtype == KEEL_FLOAT32 ? keel_shape_count(&t.shape) : 0;
        for (int64_t k = 0; k < n; k++) value[k] += 0.2f * (float)chance_real();
        const keel_status s = keel_model_set_weight(m, name, &t);
        keel_tensor_free(&t);
        if (s < 0) return s;
    }
    return KEEL_OK;
}

/* SGD with a rate of 1: an update of a weight is its gradient. */
static keel_status write_graph(random_graph *g, const char *policy, const char *path)
{
    keel_model *m;
    KEEL_TRY(build_model(g, KEEL_FLOAT32, &m));
    chance_seed(g->seed * 16);
    keel_status s = shake_weights(m);
    if (s >= 0) s = keel_model_set_learning_rate(m, 1);
    if (s >= 0) s = keel_model_set_dtype_policy(m, policy);
    if (s >= 0) s = keel_model_save(m, path);
    keel_model_destroy(m);
    return s;
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc != 5 || strlen(argv[1]) > sizeof path - 40) {
        fprintf(stderr, "random_graphs FOLDER SEED COUNT POLICY\n");
        return 2;
    }
    const uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++) {
        random_graph g;
        snprintf(path, sizeof path, "%s/%llu.keras", argv[1], (unsigned long long)seed);
        if (draw_graph(&g, seed, true) < 0 || write_graph(&g, argv[4], path) < 0) {
            fprintf(stderr, "random_graphs: seed %llu: %s\n", (unsigned long long)seed,
                    keel_error());
            return 1;
        }
        printf("seed %llu\n", (unsigned long long)seed);
        print_graph(&g);
    }
    return 0;
}
