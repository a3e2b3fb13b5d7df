/* Dense layers with relu; images are flattened first. */
#include "architecture.h"
#include <stdio.h>

static keel_symbol build(keel_net *n, keel_symbol x)
{
    char name[32];
    if (n->input.rank > 1) x = keel_net_call(n, "Flatten", NULL, x);
    const int64_t usual[] = { 512, 512 };
    const int64_t *units = n->n_size ? n->size : usual;
    for (int i = 0; i < (n->n_size ? n->n_size : 2); i++) {
        snprintf(name, sizeof name, "dense_%d", i + 1);
        x = keel_net_call(n, "Dense",
                          KEEL_ARGS(KEEL_ARG_STR("name", name), KEEL_ARG_INT("units", units[i]),
                                    KEEL_ARG_STR("activation", "relu")),
                          x);
        if (n->dropout > 0)
            x = keel_net_call(n, "Dropout", KEEL_ARGS(KEEL_ARG_FLOAT("rate", n->dropout)), x);
    }
    return x;
}

const keel_architecture keel_architecture_mlp = {
    .name = "mlp",
    .summary = "dense layers of --sizes units (512,512), for rows of numbers or small images",
    .scale = 1.0 / 255,
    .head = "predictions",
    .build = build,
};
