/* See _monitor.h. */
#include "train/callbacks/_monitor.h"
#include "metrics/metric.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The direction of a loss or metric by its name in the logs; 0: neither. */
static int direction_of(const keel_model *m, const char *name)
{
    static const char *const up[] = { "accuracy", "acc" };
    static const char *const down[] = { "crossentropy", "ce" };
    const size_t n = strlen(name);
    char whole[256];
    snprintf(whole, sizeof whole, "%.*s", (int)strcspn(name, "["), name); /* of "f1_score[0]" */
    if (!strcmp(name, "loss") || (n > 5 && !strcmp(name + n - 5, "_loss"))) return -1;
    for (int i = 0; i < m->compiled.n_metric; i++) {
        const keel_model_metric *x = &m->compiled.metric[i];
        const char *output = keel_model_output_name(m, x->output);
        const size_t prefix = output ? strlen(output) : 0;
        const bool of_output = prefix && !strncmp(whole, output, prefix) && whole[prefix] == '_' &&
                               !strcmp(whole + prefix + 1, x->name);
        if (strcmp(x->name, whole) && !of_output) continue;
        if (x->metric.type) return ((const keel_metric *)x->metric.type)->direction;
        for (int k = 0; k < 2; k++) {
            if (!strcasecmp(x->name, up[k])) return 1;
            if (!strcasecmp(x->name, down[k])) return -1;
        }
    }
    return 0;
}

/* Whether it is of a validation, where there is none. */
static bool lacks_validation(const keel_monitor *m, const keel_moment *at)
{
    for (int i = 0; i < at->logs->count; i++)
        if (!strncmp(at->logs->name[i], "val_", 4)) return false;
    return !strncmp(m->monitor, "val_", 4);
}

keel_status keel_monitor_begin(const keel_monitor *m, const keel_moment *at, int *mode)
{
    keel_text names = { 0 };
    bool there = false;
    for (int i = 0; i < at->logs->count; i++) {
        there = there || !strcmp(at->logs->name[i], m->monitor);
        keel_text_add(&names, "%s%s", i ? ", " : "", at->logs->name[i]);
    }
    keel_status s = KEEL_OK;
    if (!there)
        s = keel_fail(KEEL_EARG, "monitor '%s' is not in the logs; they have %s%s", m->monitor,
                      names.data ? names.data : "nothing",
                      lacks_validation(m, at) ? ", and nothing of validation data, which is not "
                                                "given"
                                              : "");
    keel_text_free(&names);
    if (s < 0) return s;
    *mode = m->mode;
    if (*mode != KEEL_MONITOR_AUTO) return KEEL_OK;
    const char *name = strncmp(m->monitor, "val_", 4) ? m->monitor : m->monitor + 4;
    const int direction = direction_of(at->model, name);
    if (direction == 0)
        return keel_fail(KEEL_EARG,
                         "monitor '%s': it is not known whether less or more is better; give mode "
                         "min or max",
                         m->monitor);
    *mode = direction > 0 ? KEEL_MONITOR_MAX : KEEL_MONITOR_MIN;
    return KEEL_OK;
}

bool keel_monitor_improves(const keel_monitor *m, int mode, double value, double best)
{
    const double delta = fabs(m->min_delta);
    if (mode == KEEL_MONITOR_MAX) return (float)(value - delta) > (float)best;
    return (float)(value + delta) < (float)best;
}

bool keel_monitor_has(const keel_monitor *m, const keel_moment *at, double *value)
{
    for (int i = 0; i < at->logs->count; i++)
        if (!strcmp(at->logs->name[i], m->monitor)) {
            *value = at->logs->value[i];
            return true;
        }
    return false;
}
