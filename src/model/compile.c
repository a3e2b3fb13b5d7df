/* What compile chooses: optimizer, losses, metrics. A C call is first written as the compile_config
 * that Keras would write, and then read like one from a file, so both mean the same. */
#include "base/memory.h"
#include "model/parts.h"
#include "optimizers/multi.h"
#include "optimizers/schedules/rate.h"
#include <math.h>
#include <string.h>

static void free_optimizer(keel_model_optimizer *o)
{
    keel_free(o->pattern);
    keel_free(o->schedule);
    keel_object_free(&o->optimizer);
    keel_object_free(&o->rate);
}

void keel_compiled_free(keel_model_compiled *c)
{
    for (int i = 0; i < c->n_optimizer; i++) free_optimizer(&c->optimizer[i]);
    keel_free(c->optimizer);
    for (int i = 0; i < KEEL_OUTPUTS_MAX; i++) {
        keel_object_free(&c->loss[i]);
        keel_model_destroy(c->values[i]);
    }
    for (int i = 0; i < c->n_metric; i++) {
        keel_model_destroy(c->metric[i].values);
        keel_free(c->metric[i].name);
        keel_object_free(&c->metric[i].metric);
    }
    for (int i = 0; i < c->n_state; i++) keel_tensor_free(&c->state[i]);
    keel_free(c->state);
    keel_free(c->moved_by);
    keel_free(c->left_out);
    json_decref(c->config);
    *c = (keel_model_compiled){ 0 };
}

/* ---- state ----------------------------------------------------------------------------------- */

keel_status keel_model_state_reset(keel_model *m)
{
    if (!m->compiled.given) return keel_fail(KEEL_EARG, "the model '%s' is not compiled", m->name);
    m->compiled.unread = false;
    KEEL_TRY(keel_compiled_state_create(m, &m->compiled));
    for (int i = 0; i < m->compiled.n_optimizer; i++) {
        keel_model_optimizer *o = &m->compiled.optimizer[i];
        o->learning_rate = ((const keel_optimizer_common *)o->optimizer.args)->learning_rate;
    }
    return KEEL_OK;
}

bool keel_model_scales_loss(const keel_model *m)
{
    const bool by_policy = m->compute == KEEL_FLOAT16 && m->dtype == KEEL_FLOAT32;
    return m->compiled.given && (m->compiled.wrapped || by_policy);
}

const char *keel_model_refused(const keel_model *m)
{
    return m->refused;
}

bool keel_model_is_compiled(const keel_model *m)
{
    bool loss = false;
    for (int i = 0; i < KEEL_OUTPUTS_MAX; i++) loss = loss || m->compiled.loss[i].type;
    return m->compiled.given && loss;
}

/* The only optimizer. KEEL_EARG: none; KEEL_EUNSUP: there are several, each with its own rate. */
static keel_status only_optimizer(const keel_model *m, keel_model_optimizer **out)
{
    if (!m->compiled.given) return keel_fail(KEEL_EARG, "the model '%s' is not compiled", m->name);
    if (m->compiled.multi)
        return keel_fail(KEEL_EUNSUP, "a MultiOptimizer has no learning rate of its own: choose "
                                      "those of its optimizers when the model is compiled");
    *out = &m->compiled.optimizer[0];
    return KEEL_OK;
}

keel_status keel_model_learning_rate(const keel_model *m, double *out)
{
    keel_model_optimizer *o = NULL;
    KEEL_TRY(only_optimizer(m, &o));
    keel_model_pull(m, KEEL_LIVE_NUMBERS);
    const keel_rate *rate = (const keel_rate *)o->rate.type;
    *out = rate ? rate->at(o->rate.args, m->compiled.iterations) : o->learning_rate;
    return KEEL_OK;
}

keel_status keel_model_set_learning_rate(keel_model *m, double rate)
{
    keel_model_optimizer *o = NULL;
    KEEL_TRY(only_optimizer(m, &o));
    if (!(rate >= 0) || !isfinite(rate))
        return keel_fail(KEEL_EARG, "a learning rate of %g: it must be a number, 0 or above", rate);
    keel_model_change(m, KEEL_LIVE_NUMBERS);
    o->learning_rate = rate;
    keel_free(o->schedule);
    keel_object_free(&o->rate);
    o->schedule = NULL;
    o->scheduled = false;
    return KEEL_OK;
}

/* Takes the schedule, which is freed if it fails. */
static keel_status take_schedule(keel_model *m, keel_model_optimizer *o, keel_object *rate)
{
    char *name = keel_strdup(rate->type->name);
    if (!name) {
        keel_object_free(rate);
        return KEEL_ENOMEM;
    }
    keel_model_change(m, KEEL_LIVE_NUMBERS);
    keel_free(o->schedule);
    keel_object_free(&o->rate);
    o->schedule = name;
    o->rate = *rate;
    o->scheduled = true;
    return KEEL_OK;
}

keel_status keel_model_set_schedule(keel_model *m, const char *text)
{
    keel_model_optimizer *o = NULL;
    keel_object rate = { 0 };
    KEEL_TRY(only_optimizer(m, &o));
    KEEL_TRY(keel_rate_parse(&rate, text));
    return take_schedule(m, o, &rate);
}

keel_status keel_model_set_rate(keel_model *m, double (*function)(void *context, int64_t step),
                                void *context)
{
    keel_model_optimizer *o = NULL;
    KEEL_TRY(only_optimizer(m, &o));
    keel_rate_call *call = keel_calloc(1, sizeof *call);
    if (!call) return KEEL_ENOMEM;
    *call = (keel_rate_call){ function, context };
    return take_schedule(m, o, &(keel_object){ .type = &keel_rate_function.type, .args = call });
}

int64_t keel_model_steps_done(const keel_model *m)
{
    keel_model_pull(m, KEEL_LIVE_NUMBERS);
    return m->compiled.iterations;
}

const char *keel_model_schedule(const keel_model *m)
{
    for (int i = 0; i < m->compiled.n_optimizer; i++)
        if (m->compiled.optimizer[i].schedule) return m->compiled.optimizer[i].schedule;
    return NULL;
}

const char *keel_model_metrics_left_out(const keel_model *m)
{
    return m->compiled.left_out;
}

int64_t keel_model_state_left_out(const keel_model *m)
{
    return m->compiled.state_left_out;
}

keel_state_loaded keel_model_state_loaded(const keel_model *m)
{
    return m->compiled.state_loaded;
}

/* ---- a C call as a compile_config ------------------------------------------------------------ */

/* "mse", or an object if there are arguments or Keras needs one: of an optimizer, and of a class of
 * the program's, which Keras does not find by a text. */
static keel_status named(const keel_named *n, const keel_kind *kind, bool always_object,
                         json_t **out)
{
    keel_status s = KEEL_OK;
    json_t *json = NULL, *args = NULL;
    keel_object o = { 0 };
    const keel_type *type = kind->find(n->name);
    if (!n->args && !always_object && !(type && type->registered)) {
        if (!(*out = json_string(n->name)))
            return keel_fail(KEEL_EARG, "%s: its name is not UTF-8", kind->what);
        return KEEL_OK;
    }
    if ((s = keel_args_json(n->args, &args)) < 0) goto out;
    if (!(json = json_pack("{s:s,s:O}", "class_name", n->name, "config", args))) {
        s = keel_fail(KEEL_EARG, "%s: its name is not UTF-8", kind->what);
        goto out;
    }
    if (kind == &keel_kind_optimizer && keel_multi_find(n->name)) {
        json_object_set_new(json, "class_name", json_string(keel_multi_type.name));
        json_object_set_new(json, "module", json_string(keel_multi_type.module));
        *out = json_incref(json);
        goto out;
    }
    if (kind == &keel_kind_optimizer && keel_loss_scale_find(n->name)) {
        json_t *inner = json_object_get(args, "inner_optimizer");
        if (json_is_object(inner) && !json_object_get(inner, "module"))
            json_object_set_new(inner, "module", json_string("keras.optimizers"));
        json_object_set_new(json, "module", json_string(keel_loss_scale_type.module));
        *out = json_incref(json); /* keel_compiled_from_config reads both */
        goto out;
    }
    if ((s = keel_kind_read(&o, json, kind)) < 0) goto out;
    if (!(*out = keel_object_json(&o))) {
        s = KEEL_ENOMEM;
        goto out;
    }
    /* not a field of any type; logs show it */
    json_t *name = json_object_get(args, "name");
    if (json_is_string(name) && json_object_set(json_object_get(*out, "config"), "name", name)) {
        json_decref(*out);
        *out = NULL;
        s = keel_fail(KEEL_ENOMEM, "out of memory compiling");
    }
out:
    keel_object_free(&o);
    json_decref(args);
    json_decref(json);
    return s;
}

keel_status keel_named_optimizer(const keel_named *n, keel_model_compiled *out)
{
    keel_model_compiled c = { 0 };
    json_t *json = NULL;
    if (!n->name) return keel_fail(KEEL_EARG, "an optimizer must be given");
    keel_status s = named(n, &keel_kind_optimizer, true, &json);
    if (s >= 0) s = keel_compiled_optimizer(json, &c);
    if (s >= 0 && (c.multi || c.wrapped))
        s = keel_fail(KEEL_EUNSUP, "optimizer '%s': give its inner optimizers one by one", n->name);
    json_decref(json);
    if (s < 0)
        keel_compiled_free(&c);
    else
        *out = c;
    return s;
}

keel_status keel_named_loss(const keel_named *n, keel_object *out)
{
    json_t *json = NULL;
    if (!n->name) return keel_fail(KEEL_EARG, "a loss must be given");
    keel_status s = named(n, &keel_kind_loss, false, &json);
    if (s >= 0) s = keel_kind_read(out, json, &keel_kind_loss);
    json_decref(json);
    return s;
}

static int count_named(const keel_named *list, int most)
{
    int n = 0;
    while (n < most && list[n].name) n++;
    return n;
}

static keel_status check_output(const keel_model *m, const keel_named *n, const char *what)
{
    if (n->output >= 0 && n->output < m->n_output) return KEEL_OK;
    return keel_fail(KEEL_EARG, "%s '%s' is of output %d: the model has %d", what, n->name,
                     n->output, m->n_output);
}

/* A single loss, or a list with one entry for each output. */
static keel_status losses(const keel_model *m, const keel_compile *c, json_t **out)
{
    keel_status s = KEEL_OK;
    const int n = count_named(c->loss, KEEL_OUTPUTS_MAX);
    json_t *list = NULL;
    if (n == 0) return keel_fail(KEEL_EARG, "compile: a loss must be given");
    for (int i = 0; i < n; i++) KEEL_TRY(check_output(m, &c->loss[i], "loss"));
    if (n == 1 && c->loss[0].output == 0) return named(&c->loss[0], &keel_kind_loss, false, out);
    list = json_array();
    for (int k = 0; list && k < m->n_output; k++) {
        json_t *entry = json_null();
        for (int i = 0; i < n; i++) {
            if (c->loss[i].output != k) continue;
            if (!json_is_null(entry)) {
                s = keel_fail(KEEL_EARG, "compile: output %d has two losses", k);
                goto out;
            }
            if ((s = named(&c->loss[i], &keel_kind_loss, false, &entry)) < 0) goto out;
        }
        if (json_array_append_new(list, entry)) break;
    }
    if (!list || json_array_size(list) != (size_t)m->n_output) {
        s = keel_fail(KEEL_ENOMEM, "out of memory compiling");
        goto out;
    }
    *out = list;
    list = NULL;
out:
    json_decref(list);
    return s;
}

static keel_status metrics(const keel_model *m, const keel_named *given, json_t **out)
{
    keel_status s = KEEL_OK;
    const int n = count_named(given, KEEL_METRICS_MAX);
    json_t *all = n ? json_array() : json_null();
    for (int i = 0; i < n; i++)
        if ((s = check_output(m, &given[i], "metric")) < 0) goto out;
    for (int k = 0; n && k < m->n_output; k++) {
        json_t *list = json_array();
        for (int i = 0; i < n; i++) {
            json_t *entry = NULL;
            if (given[i].output != k) continue;
            s = named(&given[i], &keel_kind_metric, false, &entry);
            if (s >= 0 && json_array_append_new(list, entry))
                s = keel_fail(KEEL_ENOMEM, "out of memory compiling");
            if (s < 0) {
                json_decref(list);
                goto out;
            }
        }
        if (m->n_output == 1) {
            json_decref(all);
            all = list;
        } else if (json_array_append_new(all, list)) {
            s = keel_fail(KEEL_ENOMEM, "out of memory compiling");
            goto out;
        }
    }
    *out = all;
    all = NULL;
out:
    json_decref(all);
    return s;
}

static json_t *weights_json(const keel_model *m, const keel_compile *c)
{
    bool any = false;
    for (int i = 0; i < m->n_output; i++) any = any || c->loss_weights[i] != 0;
    if (!any) return json_null();
    json_t *list = json_array();
    for (int i = 0; list && i < m->n_output; i++)
        if (json_array_append_new(list, json_real(c->loss_weights[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* The compile_config of a call. Parts that the call leaves out are taken from `old`. old NULL:
 * optimizer and loss must be given. */
static keel_status call_config(const keel_model *m, const keel_compile *c, json_t *old,
                               json_t **out)
{
    keel_status s = KEEL_OK;
    json_t *optimizer = NULL, *loss = NULL, *weights = NULL, *plain = NULL, *weighted = NULL;
    const json_t *const keep_metrics =
        c->metrics[0].name || c->weighted_metrics[0].name ? NULL : old;
    if (c->size != sizeof *c)
        return keel_fail(KEEL_EARG, "compile: size is %zu, not %zu: begin with KEEL_COMPILE",
                         c->size, sizeof *c);
    if (!m->finished) return keel_fail(KEEL_EARG, "compile: the model is not finished");
    if (!old && !c->optimizer.name)
        return keel_fail(KEEL_EARG, "compile: an optimizer must be given");
    for (int i = 0; i < m->n_output && i < KEEL_OUTPUTS_MAX; i++)
        if (!isfinite(c->loss_weights[i]))
            return keel_fail(KEEL_EARG, "compile: loss weight %d is not finite", i);
    if (c->optimizer.name)
        s = named(&c->optimizer, &keel_kind_optimizer, true, &optimizer);
    else
        optimizer = json_incref(json_object_get(old, "optimizer"));
    if (s < 0) goto out;
    if (c->loss[0].name || !old) {
        if ((s = losses(m, c, &loss)) < 0) goto out;
        weights = weights_json(m, c);
    } else {
        loss = json_incref(json_object_get(old, "loss"));
        weights = json_incref(json_object_get(old, "loss_weights"));
    }
    if (keep_metrics) {
        plain = json_incref(json_object_get(keep_metrics, "metrics"));
        weighted = json_incref(json_object_get(keep_metrics, "weighted_metrics"));
    } else {
        if ((s = metrics(m, c->metrics, &plain)) < 0) goto out;
        if ((s = metrics(m, c->weighted_metrics, &weighted)) < 0) goto out;
    }
    *out = json_pack("{s:O,s:O*,s:O*,s:O*,s:O*,s:b,s:i,s:b}", "optimizer", optimizer, "loss", loss,
                     "loss_weights", weights, "metrics", plain, "weighted_metrics", weighted,
                     "run_eagerly", 0, "steps_per_execution", 1, "jit_compile", 0);
    if (!*out) s = keel_fail(KEEL_ENOMEM, "out of memory compiling");
out:
    json_decref(optimizer);
    json_decref(loss);
    json_decref(weights);
    json_decref(plain);
    json_decref(weighted);
    return s;
}

/* ---- what a call asks for and Keel has not --------------------------------------------------- */

static json_t *unread(const keel_named *list, int most)
{
    json_t *all = json_array();
    for (int i = 0; all && i < count_named(list, most); i++) {
        json_t *args = NULL;
        int failed = keel_args_json(list[i].args, &args) < 0;
        failed = failed || json_array_append_new(all, json_pack("{s:s,s:O}", "class_name",
                                                                list[i].name, "config", args));
        json_decref(args);
        if (!failed) continue;
        json_decref(all);
        return NULL;
    }
    return all;
}

/* If a part of the call is KEEL_EUNSUP, and there are several such parts, the error names all of
 * them. */
static keel_status list_missing(const keel_compile *c)
{
    keel_status s = KEEL_EUNSUP;
    json_t *config = json_pack("{s:o*,s:o*,s:o*,s:o*}", "optimizer", unread(&c->optimizer, 1),
                               "loss", unread(c->loss, KEEL_OUTPUTS_MAX), "metrics",
                               unread(c->metrics, KEEL_METRICS_MAX), "weighted_metrics",
                               unread(c->weighted_metrics, KEEL_METRICS_MAX));
    if (config) s = keel_compile_list_missing(config);
    json_decref(config);
    return s;
}

/* What a compile_config chooses, with new state. by_file: its metrics come from a file. */
static keel_status choose(keel_model *m, const json_t *config, bool by_file,
                          keel_model_compiled *out)
{
    keel_model_compiled made = { 0 };
    KEEL_TRY(keel_compiled_from_config(m, config, by_file, &made));
    const keel_status s = keel_compiled_state_create(m, &made);
    if (s < 0)
        keel_compiled_free(&made);
    else
        *out = made;
    return s;
}

static void take(keel_model *m, const keel_model_compiled *made)
{
    keel_compiled_free(&m->compiled);
    m->compiled = *made;
    keel_free(m->refused);
    m->refused = NULL;
}

keel_status keel_model_compile(keel_model *m, const keel_compile *c)
{
    json_t *config = NULL;
    keel_model_compiled made = { 0 };
    KEEL_TRY(keel_model_idle(m, "keel_model_compile"));
    keel_status s = call_config(m, c, NULL, &config);
    if (s == KEEL_EUNSUP) return list_missing(c);
    if (s >= 0) s = choose(m, config, false, &made);
    json_decref(config);
    if (s < 0) return s;
    take(m, &made);
    keel_model_decay_all(m);
    return KEEL_OK;
}

keel_status keel_model_recompile(keel_model *m, const keel_compile *c)
{
    json_t *old = NULL, *config = NULL;
    keel_model_compiled made = { 0 };
    KEEL_TRY(keel_model_idle(m, "keel_model_recompile"));
    if (!m->compiled.given && !m->refused) return keel_model_compile(m, c);
    if (m->refused)
        old = json_incref(json_object_get(m->file_config, "compile_config"));
    else
        KEEL_TRY(keel_compiled_config(m, &old));
    keel_status s = call_config(m, c, old, &config);
    if (s == KEEL_EUNSUP) s = list_missing(c);
    const bool by_file = !c->metrics[0].name && !c->weighted_metrics[0].name;
    if (s >= 0) s = choose(m, config, by_file, &made);
    if (s < 0 && m->refused) s = keel_fail_within(s, "compile_config");
    json_decref(old);
    json_decref(config);
    if (s < 0) return s;
    if (m->compiled.given && !c->optimizer.name && made.n_optimizer == m->compiled.n_optimizer &&
        made.n_state == m->compiled.n_state) { /* the same optimizer continues with its state */
        keel_tensor *const fresh = made.state;
        made.state = m->compiled.state;
        m->compiled.state = fresh;
        made.stateless = m->compiled.stateless;
        made.unread = m->compiled.unread;
        made.state_left_out = m->compiled.state_left_out;
        made.state_loaded = m->compiled.state_loaded;
        made.built = m->compiled.built;
        made.iterations = m->compiled.iterations;
        made.loss_scale = m->compiled.loss_scale;
        made.good_steps = m->compiled.good_steps;
        for (int i = 0; i < made.n_optimizer; i++)
            made.optimizer[i].number = m->compiled.optimizer[i].number;
    }
    take(m, &made);
    if (c->optimizer.name) keel_model_decay_all(m);
    return KEEL_OK;
}

const char *keel_model_loss_name(const keel_model *m, int output)
{
    if (output < 0 || output >= KEEL_OUTPUTS_MAX || !m->compiled.loss[output].type) return NULL;
    return m->compiled.loss[output].type->name;
}

bool keel_model_loss_takes_logits(const keel_model *m, int output)
{
    if (!keel_model_loss_name(m, output)) return false;
    const keel_object *loss = &m->compiled.loss[output];
    for (const keel_field *f = loss->type->fields; f && f->key; f++)
        if (!strcmp(f->key, "from_logits") && f->kind == KEEL_FIELD_BOOL)
            return *(const bool *)((const char *)loss->args + f->offset);
    return false;
}
