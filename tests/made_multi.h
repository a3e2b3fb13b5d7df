/* A model with several optimizers. */
#ifndef KEEL_TESTS_MADE_MULTI_H
#define KEEL_TESTS_MADE_MULTI_H
#include <string.h>
#include "model/model.h"
#include "model/parts.h"
#include "must.h"

/* The model with a MultiOptimizer, which only a configuration can ask for. */
static inline keel_model *made_multi(keel_model *m, const char *map)
{
    json_t *root;
    keel_model *out;
    must(keel_model_to_config(m, &root));
    json_t *compile = json_object_get(root, "compile_config");
    json_t *multi =
        json_pack("{s:s,s:{s:{s:s,s:{s:O,s:o}}}}", "class_name", "MultiOptimizer", "config",
                  "optimizer_map", "class_name", "OptimizerMap", "config", "default_optimizer",
                  json_object_get(compile, "optimizer"), "optimizer_map", json_loads(map, 0, NULL));
    assert_non_null(multi);
    json_object_set_new(compile, "optimizer", multi);
    must(keel_model_create(&out, NULL, m->dtype, 3));
    out->file_config = root;
    must(keel_model_read_root(out));
    if (out->refused) fail_msg("%s", out->refused);
    for (int i = 0; i < m->n_weight; i++) {
        must(keel_model_alloc_weight(out, i));
        memcpy(out->weight[i].data, m->weight[i].data,
               (size_t)keel_shape_count(&m->weight[i].info.spec.shape) * keel_dtype_size(m->dtype));
    }
    must(keel_compiled_state_create(out, &out->compiled));
    keel_model_destroy(m);
    return out;
}

#endif
