/* Chooses the fields of a row among named arrays; see named.h. */
#include "data/named.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/choice.h"
#include <stdio.h>
#include <string.h>

enum { NAME = 512 };

typedef struct names {
    const char *const *at;
    int64_t n;
    const char *what, *part; /* part: the suffix of x and y: "", "_train" or "_test" */
} names;

static int64_t find(const names *s, const char *name)
{
    while (*name == '/') name++; /* of HDF5: "/train/images" */
    for (int64_t i = 0; i < s->n; i++)
        if (!strcmp(s->at[i], name)) return i;
    return -1;
}

static keel_status no_array(const names *s, const char *name, const char *advice)
{
    enum { SHOWN = 12 };
    keel_text list = { 0 };
    char shown[80];
    for (int64_t i = 0; i < s->n && i < SHOWN; i++)
        keel_text_add(&list, "%s'%s'", i ? ", " : "",
                      keel_printable(shown, sizeof shown, s->at[i]));
    const keel_status r =
        keel_fail(KEEL_EFORMAT, "%s: has no array named %s; there %s %s%s%s", s->what, name,
                  s->n == 1 ? "is" : "are", list.data ? list.data : "none",
                  s->n > SHOWN ? " and more" : "", s->n ? advice : "");
    keel_text_free(&list);
    return r;
}

static keel_status add(keel_named *c, int64_t array, const char *path, keel_data_role role,
                       int choice, const char *what)
{
    if (c->n == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", what, KEEL_FIELDS_MAX);
    char *own = keel_strdup(path);
    if (!own) return KEEL_ENOMEM;
    c->field[c->n++] =
        (keel_named_field){ .array = array, .path = own, .role = role, .choice = choice };
    return KEEL_OK;
}

/* The number of arrays stem_0, stem_1, ... */
static int count_numbered(const names *s, const char *stem)
{
    char name[NAME];
    for (int n = 0;; n++) {
        snprintf(name, sizeof name, "%s_%d", stem, n);
        if (n == KEEL_FIELDS_MAX || find(s, name) < 0) return n;
    }
}

/* Choose the fields of one role: those of the list by name if they are there, else `stem`, or
 * stem_0 and so on, in the order of the list. Only inputs must exist; if no target does, `stem` may
 * be that of the only output that has a loss. */
static keel_status choose_role(keel_named *c, const names *s, const keel_choice *list, int n,
                               const char *stem, keel_data_role role)
{
    static const char chooses[] = " (--inputs chooses)";
    char name[NAME];
    bool here = n > 0, plain = true;
    const int before = c->n;
    for (int i = 0; i < n; i++) {
        if (list[i].n_part != 1)
            return keel_fail(KEEL_EARG, "%s: '%s' is one array, not several", s->what,
                             list[i].name);
        plain &= list[i].plain;
        here &= find(s, list[i].part[0]) >= 0;
        if (!list[i].plain && find(s, list[i].part[0]) < 0) return no_array(s, list[i].part[0], "");
    }
    if (here || (n && !plain)) {
        for (int i = 0; i < n; i++) {
            const int64_t at = find(s, list[i].part[0]);
            if (at < 0) return no_array(s, list[i].part[0], "");
            KEEL_TRY(add(c, at, list[i].name, role, i, s->what));
        }
        return KEEL_OK;
    }
    snprintf(name, sizeof name, "%s%s", stem, s->part);
    if (n < 2 && find(s, name) >= 0)
        return add(c, find(s, name), n ? list[0].name : stem, role, n ? 0 : -1, s->what);
    const int count = count_numbered(s, stem);
    if (count && (!n || count == n)) {
        for (int i = 0; i < count; i++) {
            snprintf(name, sizeof name, "%s_%d", stem, i);
            KEEL_TRY(add(c, find(s, name), n ? list[i].name : name, role, i, s->what));
        }
        return KEEL_OK;
    }
    for (int i = 0; i < n; i++) { /* some but not all exist */
        const int64_t at = find(s, list[i].name);
        if (role == KEEL_ROLE_INPUT && at < 0)
            return no_array(s, n > 1 ? list[i].name : stem, chooses);
        if (at >= 0) KEEL_TRY(add(c, at, list[i].name, role, i, s->what));
    }
    if (role == KEEL_ROLE_INPUT) return no_array(s, stem, chooses);
    snprintf(name, sizeof name, "%s%s", stem, s->part);
    return c->n == before && find(s, name) >= 0 ? add(c, find(s, name), stem, role, -1, s->what)
                                                : KEEL_OK;
}

/* The weights that were asked for target by target. */
static keel_status choose_each_weight(keel_named *c, const names *s, const keel_choice *w, int n)
{
    for (int i = 0; i < n; i++) {
        const char *target = NULL;
        for (int k = 0; k < c->n; k++)
            if (c->field[k].role == KEEL_ROLE_TARGET && !strcmp(c->field[k].path, w[i].target))
                target = c->field[k].path;
        const int64_t at = find(s, w[i].part[0]);
        if (!target) return keel_choice_no_target(&w[i], s->what);
        if (at < 0) return no_array(s, w[i].part[0], "");
        KEEL_TRY(add(c, at, w[i].name, KEEL_ROLE_WEIGHT, -1, s->what));
        c->field[c->n - 1].target = target;
    }
    return KEEL_OK;
}

/* The weights that were asked for, else sample_weight, or sample_weight_ and the number or name of
 * a target. */
static keel_status choose_weights(keel_named *c, const names *s, const char *asked)
{
    const char *const all = "sample_weight";
    char name[NAME];
    int k = 0;
    const char *one = asked ? asked : all;
    if (find(s, one) >= 0) return add(c, find(s, one), all, KEEL_ROLE_WEIGHT, -1, s->what);
    if (asked) return no_array(s, asked, "");
    for (int i = 0, n = c->n; i < n; i++) {
        const char *target = c->field[i].path;
        if (c->field[i].role != KEEL_ROLE_TARGET) continue;
        snprintf(name, sizeof name, "%s_%.400s", all, target);
        if (find(s, name) < 0) snprintf(name, sizeof name, "%s_%d", all, k);
        k++;
        if (find(s, name) < 0) continue;
        KEEL_TRY(add(c, find(s, name), name, KEEL_ROLE_WEIGHT, -1, s->what));
        c->field[c->n - 1].target = target;
    }
    return KEEL_OK;
}

/* An array that seems to hold weights must not be left out in silence, if there are targets. */
static keel_status check_weights(const keel_named *c, const names *s)
{
    bool targets = false;
    for (int i = 0; i < c->n; i++) targets |= c->field[i].role == KEEL_ROLE_TARGET;
    for (int64_t k = 0; targets && k < s->n; k++) {
        const char *last = strrchr(s->at[k], '/');
        bool used = strncmp(last ? last + 1 : s->at[k], "sample_weight", 13) != 0;
        char shown[80];
        for (int i = 0; i < c->n; i++) used |= c->field[i].array == k;
        if (!used)
            return keel_fail(KEEL_EFORMAT,
                             "%s: array '%s' is not used: weights are sample_weight, or "
                             "sample_weight_ and the name or number of a target",
                             s->what, keel_printable(shown, sizeof shown, s->at[k]));
    }
    return KEEL_OK;
}

keel_status keel_named_choose(keel_named *out, const char *const *list, int64_t n,
                              const keel_dataset_options *o, const char *what)
{
    keel_named c = { .n = 0 };
    names s = { list, n, what, "" };
    keel_choice *inputs = NULL, *targets = NULL, *weights = NULL;
    int n_target = 0;
    const bool wants = o->subset == KEEL_SUBSET_VALIDATION && o->validation_split == 0;
    c.held_out = wants && find(&s, "x_test") >= 0;
    if (c.held_out)
        s.part = "_test";
    else if (find(&s, "x") < 0 && find(&s, "x_train") >= 0)
        s.part = "_train";
    keel_status r = keel_choices_read(&inputs, o->inputs, o->n_input, "inputs");
    if (r >= 0) r = keel_choices_targets(&targets, &n_target, o);
    if (r >= 0) r = choose_role(&c, &s, inputs, o->n_input, "x", KEEL_ROLE_INPUT);
    if (r >= 0) r = choose_role(&c, &s, targets, n_target, "y", KEEL_ROLE_TARGET);
    if (r >= 0) r = keel_choices_weights(&weights, o);
    if (r >= 0 && !c.held_out)
        r = o->n_sample_weight ? choose_each_weight(&c, &s, weights, o->n_sample_weight)
                               : choose_weights(&c, &s, o->sample_weight);
    if (r >= 0 && !c.held_out) r = check_weights(&c, &s);
    keel_choices_free(inputs, o->n_input);
    keel_choices_free(targets, n_target);
    keel_choices_free(weights, o->n_sample_weight);
    if (r < 0)
        keel_named_free(&c);
    else
        *out = c;
    return r;
}

void keel_named_free(keel_named *c)
{
    for (int i = 0; i < c->n; i++) keel_free(c->field[i].path);
    *c = (keel_named){ .n = 0 };
}
