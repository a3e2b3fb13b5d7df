/* The optimizer of Keras's compile_config: one, one with a schedule, one inside a
 * LossScaleOptimizer, or the several of a MultiOptimizer. Read into c->optimizer, and written back
 * with the current learning rate. */
#include "base/memory.h"
#include "model/parts.h"
#include "optimizers/multi.h"
#include "optimizers/schedules/rate.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* A schedule that Keel does not have is kept by name only. */
static keel_status read_rate(const json_t *rate, keel_model_optimizer *o)
{
    if (!keel_rate_find(o->schedule)) return KEEL_OK;
    KEEL_TRY(keel_object_read(&o->rate, rate, keel_rate_find, "learning_rate"));
    const keel_rate *of = (const keel_rate *)o->rate.type;
    return of->check ? of->check(o->rate.args) : KEEL_OK;
}

/* The optimizer, with a schedule in place of its learning rate. */
static keel_status read_scheduled(const json_t *v, const json_t *rate, keel_model_optimizer *o)
{
    keel_status s = KEEL_ENOMEM;
    json_t *plain = json_deep_copy(v);
    const char *name = keel_compiled_class(rate);
    if (!plain) return keel_fail(s, "out of memory reading compile_config");
    if (!(o->schedule = keel_strdup(name ? name : "?"))) goto out;
    if ((s = read_rate(rate, o)) < 0) goto out;
    json_object_del(json_object_get(plain, "config"), "learning_rate");
    s = keel_kind_read(&o->optimizer, plain, &keel_kind_optimizer);
out:
    json_decref(plain);
    return s;
}

/* The arguments of a LossScaleOptimizer. */
static keel_status read_loss_scale(const json_t *v, keel_model_compiled *c)
{
    keel_object o = { 0 };
    if (v)
        KEEL_TRY(keel_object_read(&o, v, keel_loss_scale_find, "optimizer"));
    else
        KEEL_TRY(keel_object_default(&o, &keel_loss_scale_type));
    c->loss_scale_args = *(const keel_loss_scale_args *)o.args;
    keel_object_free(&o);
    return KEEL_OK;
}

/* Adds an optimizer that moves what the pattern names. */
static keel_status add_optimizer(const json_t *v, const char *pattern, keel_model_compiled *c)
{
    const json_t *rate = json_object_get(json_object_get(v, "config"), "learning_rate");
    keel_model_optimizer *list = keel_grow(c->optimizer, (size_t)c->n_optimizer + 1, sizeof *list),
                         *o;
    if (!list) return KEEL_ENOMEM;
    c->optimizer = list;
    o = &list[c->n_optimizer++]; /* from here on freed with c */
    *o = (keel_model_optimizer){ 0 };
    if (pattern && !(o->pattern = keel_strdup(pattern))) return KEEL_ENOMEM;
    if (json_is_object(rate))
        KEEL_TRY(read_scheduled(v, rate, o));
    else
        KEEL_TRY(keel_kind_read(&o->optimizer, v, &keel_kind_optimizer));
    o->learning_rate = ((const keel_optimizer_common *)o->optimizer.args)->learning_rate;
    return KEEL_OK;
}

/* The places of an OptimizerMap in the JSON of a MultiOptimizer. */
static json_t *map_of(const json_t *multi)
{
    json_t *map = json_object_get(json_object_get(multi, "config"), "optimizer_map");
    return json_object_get(map, "config");
}

static keel_status add_inner(const json_t *v, const char *pattern, keel_model_compiled *c)
{
    const char *name = keel_compiled_name(v);
    if (name && (keel_multi_find(name) || keel_loss_scale_find(name)))
        return keel_fail(KEEL_EARG, "MultiOptimizer: it cannot hold a %s", name);
    return add_optimizer(v, pattern, c);
}

/* Keras also takes a Python function that gives the optimizer of a weight. */
static keel_status read_multi(const json_t *v, keel_model_compiled *c)
{
    const json_t *map = json_object_get(json_object_get(v, "config"), "optimizer_map"), *inner;
    const char *name = keel_compiled_class(map), *pattern;
    keel_object ignored = { 0 };
    KEEL_TRY(keel_object_read(&ignored, v, keel_multi_find, "optimizer"));
    if (!name || !keel_optimizer_map_find(name))
        return keel_fail(KEEL_EUNSUP, "MultiOptimizer: optimizer_map is no OptimizerMap but Python "
                                      "code");
    KEEL_TRY(keel_object_read(&ignored, map, keel_optimizer_map_find, "MultiOptimizer"));
    c->multi = true;
    json_object_foreach(json_object_get(map_of(v), "optimizer_map"), pattern, inner)
        KEEL_TRY(add_inner(inner, pattern, c));
    return add_inner(json_object_get(map_of(v), "default_optimizer"), NULL, c);
}

keel_status keel_compiled_optimizer(const json_t *v, keel_model_compiled *c)
{
    const char *name = keel_compiled_name(v);
    const json_t *inner = json_object_get(json_object_get(v, "config"), "inner_optimizer");
    c->wrapped = name && keel_loss_scale_find(name);
    KEEL_TRY(read_loss_scale(c->wrapped ? v : NULL, c));
    if (name && keel_multi_find(name)) return read_multi(v, c);
    if (!c->wrapped) return add_optimizer(v, NULL, c);
    if (!json_is_object(inner))
        return keel_fail(KEEL_EARG, "LossScaleOptimizer: inner_optimizer must be given, with its "
                                    "class_name and config");
    name = keel_compiled_class(inner);
    if (name && keel_multi_find(name)) return read_multi(inner, c);
    return add_optimizer(inner, NULL, c);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The schedule of an optimizer, which has done so many steps: a new reference, NULL: no memory. A
 * function's is a rate that stays as it is. */
static json_t *schedule_config(const keel_model_optimizer *o, int64_t iterations)
{
    if (o->rate.type != &keel_rate_function.type) return keel_object_json(&o->rate);
    const double now = keel_rate_function.at(o->rate.args, iterations);
    return json_pack("{s:s,s:s,s:{s:f,s:i,s:f},s:n}", "module", "keras.optimizers.schedules",
                     "class_name", "ExponentialDecay", "config", "initial_learning_rate", now,
                     "decay_steps", 1, "decay_rate", 1.0, "registered_name");
}

/* The optimizer with its current learning rate: a new reference, NULL: no memory. */
static json_t *optimizer_config(const keel_model_optimizer *o, int64_t iterations, json_t *written)
{
    json_t *config = json_incref(written);
    if (!json_is_object(json_object_get(config, "config"))) { /* a bare name */
        json_decref(config);
        config = keel_object_json(&o->optimizer);
    }
    json_t *args = json_object_get(config, "config");
    const json_t *rate = json_object_get(args, "learning_rate");
    bool failed = !config;
    if (!failed && !o->schedule && (!rate || json_number_value(rate) != o->learning_rate))
        failed = json_object_set_new(args, "learning_rate", json_real(o->learning_rate)) != 0;
    if (!failed && o->scheduled)
        failed = json_object_set_new(args, "learning_rate", schedule_config(o, iterations)) != 0;
    if (!failed) return config;
    json_decref(config);
    return NULL;
}

/* Writes the optimizers of a MultiOptimizer into its config. */
static bool put_optimizers(const keel_model_compiled *c, json_t *multi)
{
    bool ok = true;
    for (int i = 0; i < c->n_optimizer && ok; i++) {
        const keel_model_optimizer *o = &c->optimizer[i];
        json_t *in = o->pattern ? json_object_get(map_of(multi), "optimizer_map") : map_of(multi);
        const char *key = o->pattern ? o->pattern : "default_optimizer";
        ok = json_object_set_new(in, key,
                                 optimizer_config(o, c->iterations, json_object_get(in, key))) == 0;
    }
    return ok;
}

/* Keras writes the optimizer without the LossScaleOptimizer that its compile put around it, and
 * finds it again only if the policy of the whole program is mixed_float16; else it drops the state.
 * So Keel writes what trains. */
bool keel_compiled_put_optimizer(const keel_model *m, json_t *config)
{
    const keel_model_compiled *c = &m->compiled;
    json_t *outer = json_object_get(config, "optimizer"), *args = json_object_get(outer, "config");
    json_t *trains = c->wrapped ? json_object_get(args, "inner_optimizer") : outer, *inner;
    if (c->multi && !put_optimizers(c, trains)) return false;
    inner =
        c->multi ? json_incref(trains) : optimizer_config(&c->optimizer[0], c->iterations, trains);
    if (c->wrapped || !keel_model_scales_loss(m))
        return c->wrapped ? json_object_set_new(args, "inner_optimizer", inner) == 0
                          : json_object_set_new(config, "optimizer", inner) == 0;
    return json_object_set_new(
               config, "optimizer",
               json_pack("{s:s,s:s,s:{s:s,s:o,s:f,s:I},s:n}", "module", keel_loss_scale_type.module,
                         "class_name", keel_loss_scale_type.name, "config", "name",
                         "loss_scale_optimizer", "inner_optimizer", inner, "initial_scale",
                         c->loss_scale_args.initial_scale, "dynamic_growth_steps",
                         (json_int_t)c->loss_scale_args.dynamic_growth_steps, "registered_name")) ==
           0;
}
