/* Keras's compile_config: read into objects, and written back.
 *
 * Losses and metrics have many forms: one for all outputs, a list by output, or an object by the
 * output's name. Each is a name, {"class_name", "config"}, or a "function" with its name. */
#include "base/memory.h"
#include "base/plural.h"
#include "base/text.h"
#include "model/parts.h"
#include "optimizers/multi.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NESTED_MAX = 4 };

const char *keel_compiled_class(const json_t *v)
{
    return json_string_value(json_object_get(v, "class_name"));
}

const char *keel_compiled_name(const json_t *v)
{
    const char *name = json_string_value(v);
    if (!name) name = json_string_value(json_object_get(v, "config"));
    return name ? name : keel_compiled_class(v);
}

/* ---- what there is --------------------------------------------------------------------------- */

static const keel_type *nth_optimizer(int i)
{
    return keel_optimizers[i] ? &keel_optimizers[i]->type : NULL;
}

static const keel_type *nth_loss(int i)
{
    return keel_losses[i] ? &keel_losses[i]->type : NULL;
}

static const keel_type *nth_metric(int i)
{
    return keel_metrics[i] ? &keel_metrics[i]->type : NULL;
}

const keel_kind keel_kind_optimizer = { "optimizer", keel_optimizer_find, nth_optimizer, NULL };
const keel_kind keel_kind_loss = { "loss", keel_loss_find, nth_loss, "keel_register_loss" };
const keel_kind keel_kind_metric = { "metric", keel_metric_find, nth_metric,
                                     "keel_register_metric" };

keel_status keel_kind_read(keel_object *o, const json_t *v, const keel_kind *kind)
{
    const keel_status s = keel_object_read(o, v, kind->find, kind->what);
    const char *name = keel_compiled_name(v), *custom = keel_custom_name(v);
    char known[600] = "";
    size_t n = 0;
    if (s == KEEL_EUNSUP && custom && kind->registers && !kind->find(custom))
        return keel_fail(s,
                         "%s: '%.100s' is not one of Keras's; a program can register it (%s of "
                         "keel/custom.h)",
                         kind->what, custom, kind->registers);
    if (s != KEEL_EUNSUP || !name || custom || kind->find(name)) return s;
    for (int i = 0; kind->nth(i) && n < sizeof known - 64; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%.40s", i ? ", " : "",
                              kind->nth(i)->name);
    return keel_fail(s, "%s: there is no '%.60s' here; there are %s", kind->what, name, known);
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* A list; Keras writes a tuple as an object. */
static const json_t *list_of(const json_t *v)
{
    const char *name = keel_compiled_class(v);
    if (json_is_array(v)) return v;
    if (!name || (strcmp(name, "__tuple__") && strcmp(name, "__list__"))) return NULL;
    const json_t *items = json_object_get(json_object_get(v, "config"), "items");
    if (!items) items = json_object_get(v, "items");
    return json_is_array(items) ? items : NULL;
}

/* Whether the outputs are a structure of several levels. */
static bool is_nested(const keel_model *m)
{
    const json_t *path;
    size_t i;
    json_array_foreach(m->output_paths, i, path) if (json_array_size(path) > 1) return true;
    return false;
}

/* What a structure has at the place of that output in the model's outputs: at its end, or on the
 * way there if the structure ends before. NULL: nothing. */
static const json_t *at_output(const keel_model *m, const json_t *v, int output)
{
    const json_t *path = json_array_get(m->output_paths, (size_t)output), *step;
    size_t i;
    json_array_foreach(path, i, step)
    {
        const json_t *list = list_of(v);
        const char *key = json_string_value(step);
        if (key && json_is_object(v) && !keel_compiled_class(v))
            v = json_object_get(v, key);
        else if (!key && list)
            v = json_array_get(list, (size_t)json_integer_value(step));
        else
            break;
    }
    return v;
}

/* The entry for one output, from a list by output, an object by name, or a structure like that of
 * the outputs. */
static keel_status entry_of(const keel_model *m, const json_t *v, const char *what, int output,
                            const json_t **out)
{
    const json_t *list = list_of(v);
    if (!list && !json_is_object(v))
        return keel_fail(KEEL_EARG, "%s: expected a name, a list or an object", what);
    if (is_nested(m) && (!list || json_array_size(list) != (size_t)m->n_output))
        *out = at_output(m, v, output);
    else if (!list)
        *out = json_object_get(v, keel_model_output_name(m, output));
    else if (json_array_size(list) != (size_t)m->n_output)
        return keel_fail(KEEL_EARG, "%s: a list of %zu, but the model has %d output%s", what,
                         json_array_size(list), m->n_output, keel_s(m->n_output));
    else
        *out = json_array_get(list, (size_t)output);
    return KEEL_OK;
}

/* Does an output have that key at that depth? */
static bool is_key(const keel_model *m, const char *key, size_t depth)
{
    for (int i = 0; i < m->n_output; i++) {
        const json_t *path = json_array_get(m->output_paths, (size_t)i);
        const char *own = json_string_value(json_array_get(path, depth));
        if (own && !strcmp(key, own)) return true;
        if (depth == 0 && !strcmp(key, keel_model_output_name(m, i))) return true;
    }
    return false;
}

static keel_status check_below(const keel_model *m, const json_t *v, const char *what, size_t depth)
{
    const char *key;
    size_t i;
    json_t *value;
    if (depth > NESTED_MAX) return keel_fail(KEEL_EARG, "%s: nested too deeply", what);
    if (is_nested(m)) {
        json_array_foreach(list_of(v), i, value) KEEL_TRY(check_below(m, value, what, depth + 1));
    }
    if (!json_is_object(v) || keel_compiled_class(v)) return KEEL_OK;
    json_object_foreach((json_t *)v, key, value)
    {
        if (!is_key(m, key, depth))
            return keel_fail(KEEL_EARG, "%s: no output '%.100s'", what, key);
        if (is_nested(m)) KEEL_TRY(check_below(m, value, what, depth + 1));
    }
    return KEEL_OK;
}

static keel_status check_names(const keel_model *m, const json_t *v, const char *what)
{
    return check_below(m, v, what, 0);
}

static bool given(const json_t *v)
{
    return v && !json_is_null(v);
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* The loss of one output, which Keras also takes as a list. It adds up those of a longer one. */
static keel_status only_loss(const keel_model *m, int output, const json_t **entry)
{
    char shown[80];
    const json_t *list = list_of(*entry);
    if (json_array_size(list) > 1)
        return keel_fail(KEEL_EUNSUP,
                         "%zu losses of the output '%s' are not supported, only one is",
                         json_array_size(list),
                         keel_printable(shown, sizeof shown, keel_model_output_name(m, output)));
    if (json_array_size(list) == 1) *entry = json_array_get(list, 0);
    return KEEL_OK;
}

static keel_status read_losses(const keel_model *m, const json_t *loss, keel_model_compiled *c)
{
    const bool one = json_is_string(loss) || (keel_compiled_class(loss) && !list_of(loss));
    KEEL_TRY(check_names(m, loss, "loss"));
    for (int i = 0; given(loss) && i < m->n_output; i++) {
        const json_t *entry = loss;
        if (!one) KEEL_TRY(entry_of(m, loss, "loss", i, &entry));
        KEEL_TRY(only_loss(m, i, &entry));
        if (!given(entry)) continue;
        KEEL_TRY(keel_kind_read(&c->loss[i], entry, &keel_kind_loss));
        KEEL_TRY(keel_model_read_values(m, &c->loss[i], &c->values[i]));
    }
    return KEEL_OK;
}

static keel_status read_weights(const keel_model *m, const json_t *weights, keel_model_compiled *c)
{
    KEEL_TRY(check_names(m, weights, "loss_weights"));
    for (int i = 0; i < m->n_output; i++) {
        const json_t *entry = weights;
        c->loss_weight[i] = 1;
        if (!given(weights)) continue;
        if (!json_is_number(weights)) KEEL_TRY(entry_of(m, weights, "loss_weights", i, &entry));
        if (!given(entry)) continue;
        if (!json_is_number(entry) || !isfinite(json_number_value(entry)))
            return keel_fail(KEEL_EARG, "loss_weights: expected numbers");
        c->loss_weight[i] = json_number_value(entry);
    }
    return KEEL_OK;
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* The name in logs (after that of the output if there are several): the string that the user gave,
 * or the name in the config. */
static keel_status name_metric(const json_t *v, keel_model_metric *metric)
{
    char snake[128];
    const json_t *config = json_object_get(v, "config");
    const char *name = json_string_value(v);
    keel_text text = { 0 };
    if (!name) name = json_string_value(config); /* a function */
    if (!name) name = json_string_value(json_object_get(config, "name"));
    if (!name) {
        keel_snake_case(snake, sizeof snake, metric->metric.type->name);
        name = snake;
    }
    keel_text_add_name(&text, 0, name); /* the config keeps it unchanged */
    if (text.failed) {
        keel_text_free(&text);
        return KEEL_ENOMEM;
    }
    metric->name = text.data;
    return KEEL_OK;
}

/* Adds a name to the text of metrics that are left out; behind it, if Keel has the metric, which
 * argument is the reason. */
static keel_status leave_out(const json_t *v, keel_model_compiled *c)
{
    const char *name = keel_compiled_name(v),
               *why = name && keel_metric_find(name) ? keel_error() : NULL;
    keel_text text = { 0 };
    for (int i = 0; why && i < 2; i++) { /* without "metric: AUC: " */
        const char *before = i ? name : "metric";
        const size_t n = strlen(before);
        if (!strncmp(why, before, n) && !strncmp(why + n, ": ", 2)) why += n + 2;
    }
    keel_text_add(&text, "%s%s%.60s", c->left_out ? c->left_out : "", c->left_out ? ", " : "",
                  name ? name : "?");
    if (why) keel_text_add(&text, " (%.160s)", why);
    if (text.failed) {
        keel_text_free(&text);
        return KEEL_ENOMEM;
    }
    keel_free(c->left_out);
    c->left_out = text.data;
    return KEEL_OK;
}

/* The function of an entry that is one, or of a MeanMetricWrapper around one; NULL: it is a class.
 */
static const char *function_of(const json_t *v)
{
    const char *class_name = keel_compiled_class(v);
    if (class_name && !strcmp(class_name, "MeanMetricWrapper"))
        v = json_object_get(json_object_get(v, "config"), "fn");
    return keel_compiled_class(v) && !strcmp(keel_compiled_class(v), "function") &&
                   !keel_custom_name(v)
               ? keel_compiled_name(v)
               : NULL;
}

/* A function of Keras's is the metric that is its mean, and what else stands beside it in a
 * MeanMetricWrapper are its arguments. */
static keel_status read_metric(const json_t *v, keel_object *out)
{
    const char *function = function_of(v);
    const json_t *config = json_object_get(v, "config");
    const bool wrapper =
        keel_compiled_class(v) && !strcmp(keel_compiled_class(v), "MeanMetricWrapper");
    if (!wrapper && (!function || !keel_metric_function(function)))
        return keel_kind_read(out, v, &keel_kind_metric);
    const char *other = keel_compiled_name(json_object_get(config, "fn"));
    if (!function)
        return keel_fail(KEEL_EUNSUP,
                         "metric: MeanMetricWrapper of '%.60s', which is no function of Keras's",
                         other ? other : "?");
    if (!keel_metric_function(function))
        return keel_fail(KEEL_EUNSUP,
                         "metric: MeanMetricWrapper of '%.60s', which gives no number "
                         "for each row",
                         function);
    json_t *args = wrapper ? json_copy((json_t *)config) : json_object();
    json_object_del(args, "fn");
    json_object_del(args, "name");
    json_object_del(args, "dtype");
    json_t *entry = json_pack("{s:s, s:o?}", "class_name", function, "config", args);
    if (!entry) return keel_fail(KEEL_ENOMEM, "out of memory reading compile_config");
    const keel_status s = keel_object_read(out, entry, keel_metric_function, "metric");
    json_decref(entry);
    return s;
}

static bool waits_for_target(const char *name)
{
    return name && (!strcasecmp(name, "accuracy") || !strcasecmp(name, "acc") ||
                    !strcasecmp(name, "crossentropy") || !strcasecmp(name, "ce"));
}

static keel_status add_metric(const keel_model *m, const json_t *v, int output, bool weighted,
                              keel_model_compiled *c)
{
    keel_model_metric metric = { .output = output, .weighted = weighted };
    if (c->n_metric == 2 * KEEL_METRICS_MAX)
        return keel_fail(KEEL_EUNSUP, "more than %d metrics", 2 * KEEL_METRICS_MAX);
    keel_status s = KEEL_OK;
    if (!waits_for_target(json_string_value(v))) s = read_metric(v, &metric.metric);
    const bool known = keel_compiled_name(v) &&
                       keel_metric_find(keel_compiled_name(v)); /* but not with such arguments */
    if (c->by_file && (s == KEEL_EUNSUP || (s == KEEL_EARG && known))) {
        c->left_out_of[output] = true;
        return leave_out(v, c);
    }
    if (s < 0) return s;
    if ((s = keel_model_read_values(m, &metric.metric, &metric.values)) >= 0)
        s = name_metric(v, &metric);
    if (s < 0) {
        keel_object_free(&metric.metric);
        keel_model_destroy(metric.values);
    } else {
        c->metric[c->n_metric++] = metric;
    }
    return s;
}

static keel_status add_metrics(const keel_model *m, const json_t *v, int output, bool weighted,
                               keel_model_compiled *c, int depth)
{
    const json_t *list = list_of(v), *entry;
    const char *key;
    size_t i;
    if (!given(v)) return KEEL_OK;
    if (depth > NESTED_MAX) return keel_fail(KEEL_EARG, "metrics: lists nested too deeply");
    if (list) {
        json_array_foreach(list, i, entry)
            KEEL_TRY(add_metrics(m, entry, output, weighted, c, depth + 1));
        return KEEL_OK;
    }
    if (json_is_object(v) && !keel_compiled_class(v)) { /* by name, for one output */
        json_object_foreach((json_t *)v, key, entry)
            KEEL_TRY(add_metrics(m, entry, output, weighted, c, depth + 1));
        return KEEL_OK;
    }
    return add_metric(m, v, output, weighted, c);
}

static keel_status read_metrics(const keel_model *m, const json_t *v, bool weighted,
                                keel_model_compiled *c)
{
    const char *what = weighted ? "weighted_metrics" : "metrics";
    if (!given(v)) return KEEL_OK;
    if (!list_of(v) && !json_is_object(v))
        return keel_fail(KEEL_EARG, "%s: expected a list or an object by output", what);
    KEEL_TRY(check_names(m, v, what));
    if (m->n_output == 1) return add_metrics(m, v, 0, weighted, c, 0);
    if (json_array_size(list_of(v)) == 0 && list_of(v)) return KEEL_OK;
    for (int i = 0; i < m->n_output; i++) {
        const json_t *entry = NULL;
        KEEL_TRY(entry_of(m, v, what, i, &entry));
        KEEL_TRY(add_metrics(m, entry, i, weighted, c, 0));
    }
    return KEEL_OK;
}

/* ---- what is missing ------------------------------------------------------------------------- */

typedef struct teller {
    void (*tell)(void *context, const char *what);
    void *context;
} teller;

static void try_one(const teller *t, const json_t *v, const keel_kind *kind)
{
    char what[192];
    keel_model_compiled c = { 0 };
    const char *name = keel_compiled_name(v), *custom = keel_custom_name(v);
    keel_status s;
    if (kind == &keel_kind_metric && waits_for_target(json_string_value(v))) return;
    if (kind == &keel_kind_optimizer)
        s = keel_compiled_optimizer(v, &c);
    else if (kind == &keel_kind_metric)
        s = read_metric(v, &c.loss[0]);
    else
        s = keel_kind_read(&c.loss[0], v, kind);
    keel_compiled_free(&c);
    if (s != KEEL_EUNSUP) return;
    if (kind == &keel_kind_optimizer && name && keel_loss_scale_find(name))
        name = keel_compiled_name(json_object_get(json_object_get(v, "config"), "inner_optimizer"));
    if (custom && kind->registers && !kind->find(custom))
        snprintf(what, sizeof what, "%s '%.100s' (see %s)", kind->what, custom, kind->registers);
    else if (name && !kind->find(name) && !keel_multi_find(name) &&
             strcmp(name, "MeanMetricWrapper") != 0)
        snprintf(what, sizeof what, "%s '%.60s'", kind->what, name);
    else
        snprintf(what, sizeof what, "%.160s", keel_error());
    t->tell(t->context, what);
}

/* One entry, or lists and objects of them. */
static void try_all(const teller *t, const json_t *v, const keel_kind *kind, int depth)
{
    const json_t *list = list_of(v), *entry;
    const char *key;
    size_t i;
    if (!given(v) || depth > NESTED_MAX) return;
    if (list) {
        json_array_foreach(list, i, entry) try_all(t, entry, kind, depth + 1);
    } else if (json_is_object(v) && !keel_compiled_class(v)) {
        json_object_foreach((json_t *)v, key, entry) try_all(t, entry, kind, depth + 1);
    } else {
        try_one(t, v, kind);
    }
}

void keel_compile_missing(const json_t *compile_config,
                          void (*tell)(void *context, const char *what), void *context)
{
    const teller t = { tell, context };
    try_all(&t, json_object_get(compile_config, "optimizer"), &keel_kind_optimizer, 0);
    try_all(&t, json_object_get(compile_config, "loss"), &keel_kind_loss, 0);
    try_all(&t, json_object_get(compile_config, "metrics"), &keel_kind_metric, 0);
    try_all(&t, json_object_get(compile_config, "weighted_metrics"), &keel_kind_metric, 0);
}

/* ---- all of it ------------------------------------------------------------------------------- */

keel_status keel_compiled_from_config(keel_model *m, const json_t *compile_config, bool by_file,
                                      keel_model_compiled *out)
{
    keel_status s = KEEL_OK;
    keel_model_compiled c = { .by_file = by_file };
    const json_t *optimizer = json_object_get(compile_config, "optimizer");
    if (!json_is_object(compile_config))
        return keel_fail(KEEL_EARG, "compile_config: expected an object");
    if (!given(optimizer)) {
        *out = c;
        return KEEL_OK;
    }
    if (m->n_output > KEEL_OUTPUTS_MAX)
        return keel_fail(KEEL_EUNSUP, "a compiled model of more than %d outputs", KEEL_OUTPUTS_MAX);
    if ((s = keel_compiled_optimizer(optimizer, &c)) < 0) goto out;
    if ((s = read_losses(m, json_object_get(compile_config, "loss"), &c)) < 0) goto out;
    if ((s = read_weights(m, json_object_get(compile_config, "loss_weights"), &c)) < 0) goto out;
    s = read_metrics(m, json_object_get(compile_config, "metrics"), false, &c);
    if (s < 0) goto out;
    s = read_metrics(m, json_object_get(compile_config, "weighted_metrics"), true, &c);
    if (s < 0) goto out;
    if (!(c.config = json_deep_copy(compile_config))) {
        s = keel_fail(KEEL_ENOMEM, "out of memory reading compile_config");
        goto out;
    }
    c.given = true;
    *out = c;
    c = (keel_model_compiled){ 0 };
out:
    keel_compiled_free(&c);
    return s == KEEL_EUNSUP ? keel_compile_list_missing(compile_config) : s;
}

keel_status keel_compiled_config(const keel_model *m, json_t **out)
{
    json_t *config = json_deep_copy(m->compiled.config);
    if (!config || !keel_compiled_put_optimizer(m, config)) {
        json_decref(config);
        return keel_fail(KEEL_ENOMEM, "out of memory writing compile_config");
    }
    *out = config;
    return KEEL_OK;
}
