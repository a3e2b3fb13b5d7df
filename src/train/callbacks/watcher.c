/* See watcher.h. */
#include "train/callbacks/watcher.h"
#include "base/type_help.h"
#include "base/memory.h"
#include "model/parts.h"
#include <stdlib.h>
#include <string.h>

/* ---- by name --------------------------------------------------------------------------------- */

const keel_type *keel_watcher_find(const char *name)
{
    for (int i = 0; keel_watchers[i]; i++)
        if (keel_type_is(&keel_watchers[i]->type, name)) return &keel_watchers[i]->type;
    return NULL;
}

static const keel_type *at(int i)
{
    return keel_watchers[i] ? &keel_watchers[i]->type : NULL;
}

/* Those of Keras that are no struct here, and why. */
static keel_status left_out(const char *name)
{
    static const char *const names[][2] = {
        { "LambdaCallback", "it is the C struct keel_callback itself" },
        { "History", "every fit has one (keel_history; keel fit --history FILE.csv)" },
        { "RemoteMonitor", "Keel opens no connections: write a file with CSVLogger, or send the "
                           "logs in a callback of your own" },
        { "OrbaxCheckpoint", "its format is that of another library; ModelCheckpoint saves .keras "
                             "files" },
    };
    const size_t n = strcspn(name, "(");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i][0]) == n && !strncmp(names[i][0], name, n))
            return keel_fail(KEEL_EUNSUP, "%s: %s", names[i][0], names[i][1]);
    return KEEL_OK;
}

const char *keel_callback_class(int i)
{
    for (int k = 0; k < i; k++)
        if (!keel_watchers[k]) return NULL;
    return i >= 0 && keel_watchers[i] ? keel_watchers[i]->type.name : NULL;
}

keel_status keel_callback_help(const char *name, char **out)
{
    const keel_type *type = keel_watcher_find(name);
    KEEL_TRY(left_out(name));
    if (!type)
        return keel_fail(KEEL_EARG, "there is no callback '%s'; 'keel callbacks' lists all of them",
                         name);
    return keel_type_help(type, out);
}

/* A caller's callback may have any context, but not the functions of one of these. */
const keel_watching *keel_watching_of(const keel_callback *c)
{
    const keel_watching *w = c->context;
    for (int i = 0; keel_watchers[i]; i++) {
        const keel_callback *on = &keel_watchers[i]->on;
        if (on->on_train_begin == c->on_train_begin && on->on_epoch_end == c->on_epoch_end &&
            on->on_train_batch_end == c->on_train_batch_end &&
            (on->on_train_begin || on->on_epoch_end || on->on_train_batch_end))
            return w;
    }
    return NULL;
}

const char *keel_callback_output(const keel_callback *c, bool *is_folder)
{
    const keel_watching *w = c ? keel_watching_of(c) : NULL;
    if (!w || !w->watcher->output) return NULL;
    *is_folder = w->watcher->fills_folder;
    return w->watcher->output(w->args.args);
}

/* ---- state ----------------------------------------------------------------------------------- */

keel_status keel_watching_reset(keel_watching *w)
{
    const keel_type *type = &w->watcher->state;
    if (!type->args_size) return KEEL_OK;
    keel_fields_free(type, w->state);
    memset(w->state, 0, type->args_size);
    return keel_fields_read(type, NULL, w->state);
}

static keel_status save_state(void *context, char **json)
{
    const keel_watching *w = context;
    json_t *v = keel_fields_json(&w->watcher->state, w->state);
    char *text = v ? json_dumps(v, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    *json = text ? keel_strdup(text) : NULL;
    json_decref(v);
    free(text); /* allocated by jansson */
    if (*json) return KEEL_OK;
    return keel_fail(KEEL_ENOMEM, "out of memory saving the state of %s", w->watcher->type.name);
}

static keel_status load_state(void *context, const char *json)
{
    keel_watching *w = context;
    const keel_type *type = &w->watcher->state;
    json_error_t error;
    json_t *v = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (!v)
        return keel_fail(KEEL_EFORMAT, "the state of %s: %s", w->watcher->type.name, error.text);
    void *state = keel_calloc(1, type->args_size);
    keel_status s = state ? keel_fields_read(type, v, state) : KEEL_ENOMEM;
    json_decref(v);
    if (s >= 0) {
        keel_fields_free(type, w->state);
        memcpy(w->state, state, type->args_size);
    }
    keel_free(state);
    return s < 0 && s != KEEL_ENOMEM ? keel_fail_within(KEEL_EFORMAT, "state") : s;
}

static keel_status state_tensor(void *context, int i, keel_callback_tensor *out)
{
    keel_watching *w = context;
    return w->watcher->tensor ? w->watcher->tensor(w, i, out) : KEEL_END;
}

/* ---- making one ------------------------------------------------------------------------------ */

/* Takes over *args, also on failure. */
static keel_status make(keel_callback **out, keel_object *args)
{
    const keel_watcher *type = (const keel_watcher *)args->type;
    keel_status s = KEEL_ENOMEM;
    keel_watching *w = keel_calloc(1, sizeof *w);
    if (!w) {
        keel_object_free(args);
        return s;
    }
    w->watcher = type;
    w->args = *args;
    *args = (keel_object){ 0 };
    w->callback = type->on;
    w->callback.size = sizeof w->callback;
    w->callback.name = type->type.name;
    w->callback.context = w;
    if (type->state.args_size) {
        w->callback.save_state = save_state;
        w->callback.load_state = load_state;
        w->callback.state_tensor = state_tensor;
        if (!(w->state = keel_calloc(1, type->state.args_size))) goto out;
        if ((s = keel_fields_read(&type->state, NULL, w->state)) < 0) goto out;
    }
    s = type->check ? type->check(w->args.args) : KEEL_OK;
    if (s < 0) goto out;
    *out = &w->callback;
    return KEEL_OK;
out:
    keel_callback_destroy(&w->callback);
    return s;
}

keel_status keel_callback_parse(keel_callback **out, const char *text)
{
    const keel_call_kind kind = { "callback", keel_watcher_find, at };
    keel_object args = { 0 };
    KEEL_TRY(left_out(text));
    KEEL_TRY(keel_object_parse(&args, text, &kind));
    return make(out, &args);
}

keel_status keel_callback_create(keel_callback **out, const char *name, const keel_arg *args)
{
    json_t *config = NULL;
    keel_object o = { .type = keel_watcher_find(name) };
    KEEL_TRY(left_out(name));
    if (!o.type)
        return keel_fail(KEEL_EARG, "there is no callback '%s'; keel_callback_class lists them",
                         name);
    KEEL_TRY(keel_args_json(args, &config));
    keel_status s = KEEL_ENOMEM;
    if ((o.args = keel_calloc(1, o.type->args_size))) s = keel_fields_read(o.type, config, o.args);
    json_decref(config);
    if (s >= 0) return make(out, &o);
    keel_free(o.args);
    return s;
}

void keel_callback_destroy(keel_callback *c)
{
    keel_watching *w = (keel_watching *)c;
    if (!w) return;
    if (w->watcher->release) w->watcher->release(w);
    if (w->state) keel_fields_free(&w->watcher->state, w->state);
    keel_free(w->state);
    keel_object_free(&w->args);
    keel_free(w);
}
