/* Calls a layer whose kernel is divided by its largest singular value before each training step.
 * Miyato et al. 2018, arXiv 1802.05957. As in Keras the divided kernel replaces the kernel, so the
 * optimizer moves what was divided, and inference uses the kernel as it is. The division is no op:
 * it is done once for a step, on any number of devices (train/spectral.h). */
#include "layers/layer.h"
#include <string.h>

typedef struct args_t {
    int64_t power_iterations;
} args_t;

static const keel_field fields[] = {
    KEEL_IGNORE("layer", "the layer that is called"),
    KEEL_INT(args_t, power_iterations, "1", 1, 1e6, "iterations for the singular value, per step"),
    { 0 },
};

/* Keras takes the attribute `kernel` of the layer, which depthwise layers do not have. */
static bool has_kernel(const keel_layer *kind)
{
    for (const keel_field *f = kind ? kind->type.fields : NULL; f && f->key; f++)
        if (!strcmp(f->key, "kernel_initializer")) return true;
    return false;
}

/* Keras's initializer of vector_u, which no argument changes. */
static keel_status first_vector(keel_object *out)
{
    json_t *v =
        json_pack("{s:s,s:{s:f}}", "class_name", "TruncatedNormal", "config", "stddev", 0.02);
    if (!v) return keel_fail(KEEL_ENOMEM, "out of memory");
    const keel_status s = keel_object_read(out, v, keel_initializer_find, "initializer");
    json_decref(v);
    return s;
}

static keel_status emit(keel_emit *e)
{
    const args_t *a = e->args;
    const keel_layer *kind = e->sub_kind(e, "layer");
    const char *name;
    keel_graph_spectral s = { .iterations = a->power_iterations };
    keel_object initializer = { 0 };
    keel_spec kernel, u;
    KEEL_TRY(e->sub(e, "layer", e->in, e->mask, 1, e->out));
    e->held_weight(e, "layer", &name, &s.weight, &kernel);
    if (!has_kernel(kind) || !name || strcmp(name, "kernel"))
        return keel_fail(KEEL_EUNSUP, "a %s has no kernel that Keel divides",
                         kind ? kind->type.name : "model");
    const keel_shape shape = KEEL_SHAPE(1, kernel.shape.dim[kernel.shape.rank - 1]);
    const keel_weight_decl vector_u = {
        .name = "vector_u", .shape = shape, .initializer = &initializer, .state = true
    };
    KEEL_TRY(first_vector(&initializer));
    const keel_status st = e->weight(e, &vector_u, &s.u, &u);
    keel_object_free(&initializer);
    KEEL_TRY(st);
    if (!kind->supports_masking) e->out_mask[0] = KEEL_MASK_NONE;
    return e->training ? keel_graph_normalize(e->graph, &s) : KEEL_OK;
}

const keel_layer keel_layer_spectral_normalization = {
    .type = { KEEL_LAYER_HEAD("SpectralNormalization",
                              "Divides the kernel of a layer by its largest singular value."),
              .args_size = sizeof(args_t), .fields = fields },
    .min_inputs = 1,
    .max_inputs = 1,
    .supports_masking = true,
    .held = (const char *const[]){ "layer", NULL },
    .first_again = true,
    .emit = emit,
};
