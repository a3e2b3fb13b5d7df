/* See callbacks.h. The shorter options become the text that --callbacks would have. */
#include "callbacks.h"
#include <string.h>

static int add(keel_callback_list *l, const char *option, const char *text)
{
    if (l->own == KEEL_CALLBACKS_MAX)
        return keel_complain(EXIT_USAGE, "--%s: more than %d callbacks", option,
                             KEEL_CALLBACKS_MAX);
    const keel_status s = keel_callback_parse(&l->made[l->own], text);
    if (s < 0) {
        char where[64];
        snprintf(where, sizeof where, "--%s", option);
        return keel_complain_within(s, where);
    }
    l->at[l->n++] = l->made[l->own++];
    return -1;
}

static int add_list(keel_callback_list *l, const char *list)
{
    char one[2048];
    int code;
    for (const char *p = list; *p;) {
        p += strspn(p, " ");
        const size_t n = keel_setup_part(p);
        if (n >= sizeof one)
            return keel_complain(EXIT_USAGE, "--callbacks: one of %zu characters is too long", n);
        snprintf(one, sizeof one, "%.*s", (int)n, p);
        if ((code = add(l, "callbacks", one)) >= 0) return code;
        p += n + (p[n] == ',');
    }
    return -1;
}

/* "val_loss,patience=5,restore-best" */
static int add_stopping(keel_callback_list *l, const char *text)
{
    char call[2048];
    const size_t n = strcspn(text, ",");
    const char *rest = text + n;
    size_t at;
    if (strlen(text) > 1024)
        return keel_complain(EXIT_USAGE, "--early-stopping: more than 1024 characters");
    at = (size_t)snprintf(call, sizeof call, "EarlyStopping(monitor=%.*s, verbose=1", (int)n, text);
    while (*rest == ',') {
        const size_t m = strcspn(++rest, ",");
        const bool restores = m == 12 && !strncmp(rest, "restore-best", m);
        if (!restores && !memchr(rest, '=', m))
            return keel_complain(EXIT_USAGE,
                                 "--early-stopping '%s': behind the value come restore-best and "
                                 "arguments as patience=5",
                                 text);
        at += restores
                  ? (size_t)snprintf(call + at, sizeof call - at, ", restore_best_weights=true")
                  : (size_t)snprintf(call + at, sizeof call - at, ", %.*s", (int)m, rest);
        rest += m;
    }
    snprintf(call + at, sizeof call - at, ")");
    return add(l, "early-stopping", call);
}

static int add_best(keel_callback_list *l, const char *name, const char *output)
{
    char call[sizeof l->best + 300];
    const size_t n = strlen(output);
    if (strpbrk(name, ",=()"))
        return keel_complain(EXIT_USAGE,
                             "--save-best '%s': give one value of the logs, as val_loss", name);
    if (n + 16 > sizeof l->best || strlen(name) > 200 || strpbrk(output, "{}'\""))
        return keel_complain(EXIT_USAGE, "--save-best: the name of the output has a brace or a "
                                         "quote, or is too long");
    snprintf(l->best, sizeof l->best, "%.*s.best.keras", (int)n - 6, output);
    snprintf(call, sizeof call, "ModelCheckpoint('%s', monitor=%s, save_best_only=true)", l->best,
             name);
    return add(l, "save-best", call);
}

int keel_callbacks_make(keel_callback_list *out, const keel_callbacks_options *o,
                        const char *output, bool validates)
{
    char call[1200];
    int code = -1;
    *out = (keel_callback_list){ 0 };
    const char *const monitors[][2] = { { "early-stopping", o->stopping },
                                        { "save-best", o->best } };
    for (int i = 0; i < 2; i++)
        if (monitors[i][1] && !strncmp(monitors[i][1], "val_", 4) && !validates)
            return keel_complain(EXIT_USAGE,
                                 "--%s %s: there is no validation data; give --validation or "
                                 "--validation-split",
                                 monitors[i][0], monitors[i][1]);
    if (o->by_epoch && snprintf(call, sizeof call, "LearningRateScheduler(schedule=%s)",
                                o->by_epoch) >= (int)sizeof call)
        return keel_complain(EXIT_USAGE, "--learning-rate-by-epoch: too long");
    if (o->by_epoch) code = add(out, "learning-rate-by-epoch", call);
    if (code < 0 && o->list) code = add_list(out, o->list);
    if (code < 0 && o->stopping) code = add_stopping(out, o->stopping);
    if (code < 0 && o->best) code = add_best(out, o->best, output);
    return code;
}

void keel_callbacks_add(keel_callback_list *l, const keel_callback *c)
{
    l->at[l->n++] = c;
}

void keel_callbacks_free(keel_callback_list *l)
{
    for (int i = 0; i < l->own; i++) keel_callback_destroy(l->made[i]);
    *l = (keel_callback_list){ 0 };
}
