/* See watch.h. */
#include "train/watch.h"
#include "train/callbacks/watcher.h"
#include "base/c_locale.h"
#include "base/memory.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const size_t place[KEEL_OCCASION_COUNT] = {
#define X(name) offsetof(keel_callback, on_##name),
    KEEL_OCCASIONS(X)
#undef X
};

static const char *const event_name[KEEL_OCCASION_COUNT] = {
#define X(name) "on_" #name,
    KEEL_OCCASIONS(X)
#undef X
};

static keel_on function_of(const keel_callback *c, keel_occasion e)
{
    keel_on f;
    memcpy(&f, (const char *)c + place[e], sizeof f);
    return f;
}

/* ---- logs ------------------------------------------------------------------------------------ */

static int find(const keel_logs *logs, const char *name)
{
    for (int i = 0; i < logs->count; i++)
        if (!strcmp(logs->name[i], name)) return i;
    return -1;
}

double keel_logs_get(const keel_logs *logs, const char *name)
{
    const int i = find(logs, name);
    return i < 0 ? NAN : logs->value[i];
}

keel_status keel_logs_set(keel_logs *logs, const char *name, double value)
{
    int i = find(logs, name);
    if (i < 0 && logs->count == KEEL_LOGS_MAX)
        return keel_fail(KEEL_EARG, "no room for '%s' in the logs: %d values are the most", name,
                         KEEL_LOGS_MAX);
    if (i < 0) logs->name[i = logs->count++] = name;
    logs->value[i] = value;
    return KEEL_OK;
}

/* ---- the list -------------------------------------------------------------------------------- */

static bool only_writes(const keel_callback *c)
{
    const keel_watching *w = keel_watching_of(c);
    return w && w->watcher->only_writes;
}

keel_status keel_watch_begin(keel_watch *r, keel_model *m, const keel_fit_options *o, bool fits,
                             int rank)
{
    int n = 0;
    *r = (keel_watch){ .at = { .model = m, .fits = fits, .epochs = 1 }, .rank = rank };
    while (o->callbacks && o->callbacks[n]) n++;
    if (!(r->callback = keel_calloc((size_t)n, sizeof *r->callback))) return KEEL_ENOMEM;
    for (; r->n < n; r->n++) {
        const keel_callback *given = o->callbacks[r->n];
        if (given->size == 0 || given->size > sizeof *given) {
            keel_watch_end(r);
            return keel_fail(KEEL_EARG, "callback %d: initialize it with KEEL_CALLBACK", r->n);
        }
        memcpy(&r->callback[r->n], given, given->size);
        if (rank > 0 && only_writes(&r->callback[r->n]))
            r->callback[r->n] = (keel_callback){ KEEL_CALLBACK, .name = given->name };
        for (int e = 0; e < KEEL_OCCASION_COUNT; e++)
            if (function_of(&r->callback[r->n], e)) r->heard |= 1U << e;
        if (r->callback[r->n].sees_rows) r->shown.n = m->n_output;
    }
    r->at.watch = r;
    r->at.logs = &r->logs;
    return KEEL_OK;
}

int64_t keel_watch_bytes(const keel_watch *r)
{
    int64_t sum = 0;
    for (int i = 0; i < r->n; i++) {
        const keel_watching *w = keel_watching_of(&r->callback[i]);
        if (w && w->watcher->bytes) sum += w->watcher->bytes(w->args.args, r->at.model);
    }
    return sum;
}

int keel_watch_reads(const keel_watch *r)
{
    int reads = 0;
    for (int i = 0; i < r->n; i++) {
        const keel_watching *w = keel_watching_of(&r->callback[i]);
        if (w && w->watcher->reads) reads |= w->watcher->reads(w->args.args);
    }
    return reads;
}

void keel_watch_end(keel_watch *r)
{
    keel_live_end(&r->live);
    keel_free(r->callback);
    for (int i = 0; i < KEEL_SCORES_MAX; i++) keel_free(r->val_name[i]);
    keel_text_free(&r->notes);
    keel_shown_free(&r->shown);
    *r = (keel_watch){ 0 };
}

void keel_watch_go_live(keel_watch *r, keel_trainer *t)
{
    keel_live_begin(&r->live, t);
}

void keel_watch_say(keel_watch *r, const char *format, ...)
{
    char text[KEEL_ERROR_MAX];
    va_list ap;
    va_start(ap, format);
    keel_vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    keel_text_add(&r->notes, "%s%s", r->notes.length ? "; " : "", text);
}

keel_status keel_watch_name_logs(keel_watch *r, const keel_logs *names, bool validates)
{
    char name[160];
    r->logs = *names;
    for (int i = 0; i < names->count; i++) r->logs.value[i] = NAN;
    for (int i = 0; validates && i < names->count; i++) {
        snprintf(name, sizeof name, "val_%s", names->name[i]);
        if (!(r->val_name[i] = keel_strdup(name))) return KEEL_ENOMEM;
        KEEL_TRY(keel_logs_set(&r->logs, r->val_name[i], NAN));
    }
    return KEEL_OK;
}

const char *keel_watch_val_name(const keel_watch *r, const char *name)
{
    for (int i = 0; i < r->known.count; i++)
        if (!strncmp(r->known.name[i], "val_", 4) && !strcmp(r->known.name[i] + 4, name))
            return r->known.name[i];
    return NULL;
}

/* ---- telling --------------------------------------------------------------------------------- */

static const char *called(const keel_callback *c)
{
    return c->name ? c->name : "of the caller";
}

static keel_status failed(const keel_callback *c, keel_occasion e, keel_status s, bool said)
{
    if (s == KEEL_ENOMEM && said) return s; /* of Keel, called by it */
    if (!said)
        return keel_fail(KEEL_ECALLBACK, "the callback %s failed in %s", called(c), event_name[e]);
    return keel_fail_within(KEEL_ECALLBACK, "the callback %s, in %s", called(c), event_name[e]);
}

/* The logs of an epoch have the names that were known before the first. */
static keel_status check_logs(const keel_watch *r, const keel_callback *c)
{
    for (int i = 0; i < r->logs.count; i++)
        if (find(&r->known, r->logs.name[i]) < 0)
            return keel_fail(KEEL_ECALLBACK,
                             "the callback %s adds '%s' to the logs of an epoch, which it must "
                             "name in on_train_begin (with NaN)",
                             called(c), r->logs.name[i]);
    return KEEL_OK;
}

static keel_status tell_one(keel_watch *r, const keel_callback *c, keel_occasion e, keel_on f)
{
    const unsigned said = keel_error_count();
    const keel_status s = f(c->context, &r->at);
    if (r->live.destroyed)
        return keel_fail(KEEL_ECALLBACK,
                         "the callback %s destroyed the model in %s, while it was in use; the "
                         "model is still there",
                         called(c), event_name[e]);
    if (s < 0) return failed(c, e, s, keel_error_count() != said);
    if (s != KEEL_OK && s != KEEL_END)
        return keel_fail(KEEL_ECALLBACK, "the callback %s returned %d in %s, which is no status",
                         called(c), s, event_name[e]);
    if (s == KEEL_END && e < KEEL_ON_test_begin) r->stop = true;
    if (s == KEEL_END && e >= KEEL_ON_test_begin) r->stop_pass = true;
    return e == KEEL_ON_epoch_end ? check_logs(r, c) : KEEL_OK;
}

keel_status keel_watch_tell(keel_watch *r, keel_occasion e)
{
    for (int i = 0; keel_watch_hears(r, e) && i < r->n; i++) {
        const keel_on f = function_of(&r->callback[i], e);
        if (f) KEEL_TRY(tell_one(r, &r->callback[i], e, f));
    }
    if (e == KEEL_ON_train_begin) r->known = r->logs;
    return KEEL_OK;
}

keel_status keel_watch_tell_rows(keel_watch *r, keel_occasion e)
{
    const keel_shown *x = &r->shown;
    if (x->n) {
        r->at.outputs = x->of[KEEL_SHOWN_OUTPUT];
        r->at.targets = x->of[KEEL_SHOWN_TARGET];
        r->at.weights = x->of[KEEL_SHOWN_WEIGHT];
        r->at.masks = x->of[KEEL_SHOWN_MASK];
        r->at.output_count = x->n;
    }
    const keel_status s = keel_watch_tell(r, e);
    r->at.outputs = r->at.targets = r->at.weights = r->at.masks = NULL;
    r->at.output_count = 0;
    return s;
}

void keel_watch_failed(keel_watch *r)
{
    for (int i = 0; i < r->n; i++) {
        const keel_watching *w = keel_watching_of(&r->callback[i]);
        if (w && w->watcher->failed) w->watcher->failed(r->callback[i].context, &r->at);
    }
}
