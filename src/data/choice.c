/* Parses "name=column,column"; see choice.h. */
#include "data/choice.h"
#include "base/memory.h"
#include "keel/dataset.h"
#include <string.h>

/* The length of the part that begins at `at`: up to a comma, which in quotes is a letter. */
static size_t length_of(const char *at)
{
    size_t n = 0;
    if (*at != '"') return strcspn(at, ",");
    for (n = 1; at[n] && (at[n] != '"' || at[n + 1] == '"'); n++) n += at[n] == '"';
    return n + strcspn(at + n, ",");
}

/* Remove the quotes around a part. False: they do not end with it. */
static bool remove_quotes(char *part)
{
    const size_t n = strlen(part);
    if (*part != '"') return true;
    if (n < 3 || part[n - 1] != '"') return false;
    part[n - 1] = 0;
    char *to = part;
    for (const char *from = part + 1; *from; from++) {
        if (*from == '"' && from[1] != '"') return false;
        from += *from == '"';
        *to++ = *from;
    }
    *to = 0;
    return true;
}

static keel_status read_one(keel_choice *c, const char *entry, const char *what)
{
    const char *equals = entry ? strchr(entry, '=') : NULL;
    if (!entry || !*entry || equals == entry)
        return keel_fail(KEEL_EARG, "%s: an entry without a name", what);
    const char *at = equals ? equals + 1 : entry;
    c->plain = !equals;
    c->name = keel_strndup(entry, equals ? (size_t)(equals - entry) : strlen(entry));
    int n = 1;
    for (const char *p = at + length_of(at); equals && *p; p += 1 + length_of(p + 1)) n++;
    c->part = keel_calloc((size_t)n, sizeof *c->part);
    if (!c->name || !c->part) return KEEL_ENOMEM;
    for (; c->n_part < n; c->n_part++) {
        const size_t length = equals ? length_of(at) : strlen(at);
        if (!length) return keel_fail(KEEL_EARG, "%s: '%s' has an empty part", what, entry);
        if (!(c->part[c->n_part] = keel_strndup(at, length))) return KEEL_ENOMEM;
        if (equals && !remove_quotes(c->part[c->n_part])) {
            c->n_part++; /* so that it is freed */
            return keel_fail(KEEL_EARG, "%s: '%s' has a quote that does not end its part", what,
                             entry);
        }
        at += length + (at[length] == ',');
    }
    return KEEL_OK;
}

keel_status keel_choices_read(keel_choice **out, const char *const *list, int n, const char *what)
{
    keel_status s = KEEL_OK;
    if (n < 0 || n > KEEL_FIELDS_MAX || (n && !list))
        return keel_fail(KEEL_EARG, "%s: a list of at most %d names", what, KEEL_FIELDS_MAX);
    keel_choice *c = keel_calloc((size_t)n + 1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    for (int i = 0; s >= 0 && i < n; i++) s = read_one(&c[i], list[i], what);
    for (int i = 1; s >= 0 && i < n; i++)
        for (int k = 0; s >= 0 && k < i; k++)
            if (!strcmp(c[i].name, c[k].name))
                s = keel_fail(KEEL_EARG, "%s: '%s' is named twice", what, c[i].name);
    if (s >= 0)
        *out = c;
    else
        keel_choices_free(c, n);
    return s;
}

keel_status keel_choices_targets(keel_choice **out, int *n, const keel_dataset_options *o)
{
    *n = o->n_target;
    if (o->n_target || !o->label) return keel_choices_read(out, o->targets, o->n_target, "label");
    if (!*o->label) return keel_fail(KEEL_EARG, "label: an empty name");
    keel_choice *c = keel_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    *n = 1;
    c->name = keel_strdup("y");
    c->part = keel_calloc(1, sizeof *c->part);
    if (c->part && (c->part[0] = keel_strdup(o->label))) c->n_part = 1;
    if (c->name && c->n_part) {
        *out = c;
        return KEEL_OK;
    }
    keel_choices_free(c, 1);
    return KEEL_ENOMEM;
}

static keel_status name_weights(keel_choice *c)
{
    static const char stem[] = "sample_weight_";
    if (c->plain)
        return keel_fail(KEEL_EARG,
                         "sample weights: '%s': name the target that they are of, as "
                         "TARGET=%s",
                         c->name, c->name);
    if (c->n_part != 1)
        return keel_fail(KEEL_EARG, "sample weights: '%s' has one part, not several", c->name);
    char *name = keel_calloc(sizeof stem + strlen(c->name), 1);
    if (!name) return KEEL_ENOMEM;
    strcat(strcpy(name, stem), c->name);
    c->target = c->name;
    c->name = name;
    return KEEL_OK;
}

keel_status keel_choices_weights(keel_choice **out, const keel_dataset_options *o)
{
    const int n = o->n_sample_weight;
    keel_choice *c = NULL;
    if (n && o->sample_weight)
        return keel_fail(KEEL_EARG, "sample weights: give those of all targets or of each");
    KEEL_TRY(keel_choices_read(&c, o->sample_weights, n, "sample weights"));
    keel_status s = KEEL_OK;
    for (int i = 0; s >= 0 && i < n; i++) s = name_weights(&c[i]);
    if (s >= 0)
        *out = c;
    else
        keel_choices_free(c, n);
    return s;
}

keel_status keel_choice_no_target(const keel_choice *c, const char *what)
{
    return keel_fail(KEEL_EARG, "%s: '%s' has weights for '%s', but there is no such target", what,
                     c->part[0], c->target);
}

void keel_choices_free(keel_choice *c, int n)
{
    for (int i = 0; c && i < n; i++) {
        for (int k = 0; k < c[i].n_part; k++) keel_free(c[i].part[k]);
        keel_free(c[i].part);
        keel_free(c[i].name);
        keel_free(c[i].target);
    }
    keel_free(c);
}
