/* See multi.h. */
#include "optimizers/multi.h"
#include "optimizers/pattern.h"
#include <string.h>
#include <strings.h>

static const keel_field fields[] = {
    KEEL_IGNORE("optimizer_map", "the optimizers, and which weights they move"),
    KEEL_IGNORE("loss_scale_factor", "the gradient is the same whatever it is"),
    KEEL_IGNORE("name", "of the optimizer"),
    { 0 },
};

const keel_type keel_multi_type = {
    .name = "MultiOptimizer",
    .module = "keras.optimizers",
    .help = "several optimizers, each for some of the weights",
    .fields = fields,
};

static const keel_field fields_of_map[] = {
    KEEL_IGNORE("default_optimizer", "moves the weights that no key names"),
    KEEL_IGNORE("optimizer_map", "optimizers by the path of a weight, or an expression for it"),
    { 0 },
};

const keel_type keel_optimizer_map_type = {
    .name = "OptimizerMap",
    .module = "keras.optimizers",
    .help = "which weights the optimizers of a MultiOptimizer move",
    .fields = fields_of_map,
};

const keel_type *keel_multi_find(const char *name)
{
    return strcasecmp(name, keel_multi_type.name) ? NULL : &keel_multi_type;
}

const keel_type *keel_optimizer_map_find(const char *name)
{
    return strcmp(name, keel_optimizer_map_type.name) != 0 ? NULL : &keel_optimizer_map_type;
}

keel_status keel_multi_choose(const char *const *patterns, int n, const char *path, int *out)
{
    int chosen = n;
    for (int i = 0; i < n; i++)
        if (!strcmp(patterns[i], path)) {
            *out = i;
            return KEEL_OK;
        }
    for (int i = 0; i < n; i++) {
        bool like = false;
        KEEL_TRY(keel_pattern_finds("MultiOptimizer", patterns[i], path, true, &like));
        if (like && chosen < n)
            return keel_fail(KEEL_EARG, "MultiOptimizer: both '%.60s' and '%.60s' name '%s'",
                             patterns[chosen], patterns[i], path);
        if (like) chosen = i;
    }
    *out = chosen;
    return KEEL_OK;
}
