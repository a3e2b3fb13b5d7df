/* Which column of a CSV becomes which field. By default one column is the label and all others are
 * the features of x; options->inputs and targets choose several fields, and sample_weight that of
 * the weights. */
#include "base/memory.h"
#include "base/text.h"
#include "data/choice.h"
#include "data/sources/csv.h"
#include "tensor/shape.h"
#include <stdlib.h>
#include <string.h>

/* A column may be of an input and of a target: what an autoencoder learns is its input. Weights are
 * as targets: no input by themselves. */
enum { AS_INPUT, AS_TARGET, WAYS };

typedef struct chosen {
    keel_csv_reader *r;
    int32_t *group[WAYS], *at[WAYS]; /* [n_columns]; group -1: the column is not used so */
    bool implied; /* inputs have the names of a model's, and nobody asked for a target among them */
} chosen;

/* The column names as "'a', 'b', ..." for messages; the caller frees it. */
static keel_text list_columns(const keel_csv_reader *r)
{
    enum { SHOWN = 12 };
    keel_text list = { 0 };
    char name[64];
    for (int64_t i = 0; i < r->n_columns && i < SHOWN; i++)
        keel_text_add(&list, "%s'%s'", i ? ", " : "",
                      keel_printable(name, sizeof name, r->name[i]));
    if (r->n_columns > SHOWN)
        keel_text_add(&list, ", ... '%s' (%lld in all)",
                      keel_printable(name, sizeof name, r->name[r->n_columns - 1]),
                      (long long)r->n_columns);
    return list;
}

static keel_status no_column(const keel_csv_reader *r, const char *name)
{
    keel_text list = list_columns(r);
    const keel_status s = keel_fail(KEEL_EARG, "%s: no column '%s'; there are %s", r->first, name,
                                    list.data ? list.data : "");
    keel_text_free(&list);
    return s;
}

/* The number of a column; -1: none. KEEL_EARG: two columns have this name. */
static keel_status find_column(const keel_csv_reader *r, const char *name, int64_t *at)
{
    *at = -1;
    for (int64_t i = 0; i < r->n_columns; i++) {
        if (strcmp(r->name[i], name)) continue;
        if (*at >= 0)
            return keel_fail(KEEL_EARG, "%s: two columns are called '%s'", r->first, name);
        *at = i;
    }
    return KEEL_OK;
}

static keel_status take_column(chosen *c, int64_t i, int g)
{
    keel_csv_group *group = &c->r->group[g];
    const int way = group->role == KEEL_ROLE_INPUT ? AS_INPUT : AS_TARGET;
    if (c->group[way][i] >= 0 || (c->implied && c->group[AS_TARGET][i] >= 0))
        return keel_fail(KEEL_EARG, "%s: column '%s' is requested twice", c->r->first,
                         c->r->name[i]);
    if (!group->width) group->column = i;
    c->group[way][i] = g;
    c->at[way][i] = group->width++;
    return KEEL_OK;
}

/* Take a column by its name, or of numbered columns a range such as "2-5". */
static keel_status take_part(chosen *c, const char *part, int g)
{
    const keel_csv_reader *r = c->r;
    int64_t i;
    char *end;
    const long first = strtol(part, &end, 10);
    if (r->o->no_header && end > part && *end == '-') {
        const char *second = end + 1;
        const long last = strtol(second, &end, 10);
        if (end == second || *end || first < 0 || last < first || last >= r->n_columns)
            return no_column(r, part);
        for (i = first; i <= last; i++) KEEL_TRY(take_column(c, i, g));
        return KEEL_OK;
    }
    KEEL_TRY(find_column(r, part, &i));
    return i < 0 ? no_column(r, part) : take_column(c, i, g);
}

static keel_status add_group(keel_csv_reader *r, const char *path, keel_data_role role,
                             bool may_be_text)
{
    if (r->n_group == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", r->first, KEEL_FIELDS_MAX);
    r->group[r->n_group++] =
        (keel_csv_group){ .path = path, .role = role, .may_be_text = may_be_text };
    return KEEL_OK;
}

/* Take the fields of a list. *none: there is no list, or it has a model's names and no columns of
 * this file. */
static keel_status take_list(chosen *c, const keel_choice *list, int n, keel_data_role role,
                             bool *none)
{
    keel_csv_reader *r = c->r;
    bool plain = true, here = true;
    for (int i = 0; i < n; i++) {
        int64_t at = 0;
        if (list[i].plain && (find_column(r, list[i].name, &at) < 0 || at < 0)) here = false;
        plain &= list[i].plain;
    }
    *none = n == 0 || (plain && !here);
    c->implied = plain && role == KEEL_ROLE_INPUT;
    for (int i = 0; !*none && i < n; i++) {
        const int g = r->n_group;
        KEEL_TRY(add_group(r, list[i].name, role, role == KEEL_ROLE_INPUT));
        for (int k = 0; k < list[i].n_part; k++) KEEL_TRY(take_part(c, list[i].part[k], g));
        r->group[g].labels = role == KEEL_ROLE_TARGET && r->group[g].width == 1;
    }
    return KEEL_OK;
}

/* Targets are taken first, since the columns that remain may be the only input. */
static keel_status choose_targets(chosen *c, const char *label, const keel_choice *targets)
{
    keel_csv_reader *r = c->r;
    bool none = true;
    if (label && r->o->n_target == 0) {
        KEEL_TRY(add_group(r, "y", KEEL_ROLE_TARGET, false));
    } else {
        KEEL_TRY(take_list(c, targets, r->o->n_target, KEEL_ROLE_TARGET, &none));
        if (!none && label)
            return keel_fail(KEEL_EARG, "%s: give either a label or a list of targets, not both",
                             r->first);
        if (!none || !label) return KEEL_OK;
        if (r->o->n_target > 1)
            return keel_fail(KEEL_EARG,
                             "%s: %d targets and one label '%s'; give the column of each, as "
                             "%s=COLUMN",
                             r->first, r->o->n_target, label, targets[0].name);
        KEEL_TRY(add_group(r, targets[0].name, KEEL_ROLE_TARGET, false));
    }
    r->group[r->n_group - 1].labels = true;
    return take_part(c, label, r->n_group - 1);
}

static keel_status add_weights(chosen *c, const char *path, const char *column, const char *target)
{
    keel_csv_reader *r = c->r;
    KEEL_TRY(add_group(r, path, KEEL_ROLE_WEIGHT, false));
    KEEL_TRY(take_part(c, column, r->n_group - 1));
    r->group[r->n_group - 1].target = target;
    if (r->group[r->n_group - 1].width == 1) return KEEL_OK;
    return keel_fail(KEEL_EARG, "%s: the weight of a row is one column, not several", r->first);
}

static keel_status choose_weights(chosen *c)
{
    const keel_csv_reader *r = c->r;
    if (r->o->sample_weight) return add_weights(c, "sample_weight", r->o->sample_weight, NULL);
    for (int i = 0; i < r->o->n_sample_weight; i++) {
        const keel_choice *w = &r->weights[i];
        KEEL_TRY(add_weights(c, w->name, w->part[0], w->target));
    }
    return KEEL_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Of the columns that nobody has named, two of one name would both be taken: mostly one of them was
 * left in by mistake. */
static keel_status check_rest(const chosen *c)
{
    const keel_csv_reader *r = c->r;
    const char **name = keel_calloc((size_t)r->n_columns, sizeof *name);
    keel_status s = KEEL_OK;
    int64_t n = 0;
    char shown[80];
    if (!name) return KEEL_ENOMEM;
    for (int64_t i = 0; i < r->n_columns; i++)
        if (c->group[AS_TARGET][i] < 0) name[n++] = r->name[i];
    qsort(name, (size_t)n, sizeof *name, by_name);
    for (int64_t i = 1; s >= 0 && i < n; i++)
        if (!strcmp(name[i - 1], name[i]))
            s = keel_fail(KEEL_EARG,
                          "%s: two columns are called '%s', and both would be inputs: rename one, "
                          "or name the inputs",
                          r->first, keel_printable(shown, sizeof shown, name[i]));
    keel_free(name);
    return s;
}

static keel_status choose_inputs(chosen *c, const keel_choice *inputs)
{
    keel_csv_reader *r = c->r;
    bool none = true;
    KEEL_TRY(take_list(c, inputs, r->o->n_input, KEEL_ROLE_INPUT, &none));
    if (!none) return KEEL_OK;
    if (r->o->n_input > 1)
        return keel_fail(KEEL_EARG, "%s: %d inputs; give the columns of each, as %s=COLUMN,COLUMN",
                         r->first, r->o->n_input, inputs[0].name);
    if (!r->o->no_header) KEEL_TRY(check_rest(c));
    KEEL_TRY(add_group(r, r->o->n_input ? inputs[0].name : "x", KEEL_ROLE_INPUT, false));
    for (int64_t i = 0; i < r->n_columns; i++)
        if (c->group[AS_TARGET][i] < 0) KEEL_TRY(take_column(c, i, r->n_group - 1));
    if (r->group[r->n_group - 1].width) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "%s: no column except the label '%s'", r->first, r->name[0]);
}

static keel_status add_fields(keel_csv_reader *r)
{
    for (int i = 0; i < r->n_group; i++) {
        const keel_csv_group *g = &r->group[i];
        const keel_shape row = { 1, { g->width } }, number = { 0 };
        const bool single = g->labels || g->role == KEEL_ROLE_WEIGHT;
        KEEL_TRY(keel_table_add(
            &r->table,
            &(keel_table_field){ .path = g->path,
                                 .column = r->name[g->column],
                                 .role = g->role,
                                 .target = g->target,
                                 .cells = g->labels ? KEEL_CELLS_LABELS : KEEL_CELLS_NUMBERS,
                                 .shape = single ? number : row,
                                 .width = g->width }));
        r->undecided |= g->may_be_text;
    }
    return KEEL_OK;
}

static keel_status list_uses(const chosen *c)
{
    keel_csv_reader *r = c->r;
    if (!(r->use = keel_calloc(WAYS * (size_t)r->n_columns, sizeof *r->use))) return KEEL_ENOMEM;
    for (int64_t k = 0; k < WAYS * r->n_columns; k++) {
        const int64_t i = k / WAYS;
        const int way = (int)(k % WAYS);
        const int32_t group = c->group[way][i], at = c->at[way][i];
        if (group < 0) continue;
        const int words = way == AS_INPUT ? keel_table_words_of(&r->table, r->name[i]) : -1;
        if (words >= 0) keel_table_use_words(&r->table, words, group, at);
        r->use[r->n_use++] = (keel_csv_use){ i, group, at, words };
    }
    return keel_table_check_words(&r->table);
}

static keel_status choose(chosen *c, const char *label, const keel_choice *inputs,
                          const keel_choice *targets)
{
    const int64_t n = c->r->n_columns;
    if (!(c->group[0] = keel_calloc(2 * WAYS * (size_t)n, sizeof *c->group[0]))) return KEEL_ENOMEM;
    for (int way = 0; way < WAYS; way++) {
        c->group[way] = c->group[0] + 2 * way * n;
        c->at[way] = c->group[way] + n;
        for (int64_t i = 0; i < n; i++) c->group[way][i] = -1;
    }
    KEEL_TRY(choose_targets(c, label, targets));
    KEEL_TRY(choose_weights(c));
    KEEL_TRY(choose_inputs(c, inputs));
    KEEL_TRY(add_fields(c->r));
    return list_uses(c);
}

keel_status keel_csv_choose(keel_csv_reader *r, const char *label)
{
    chosen c = { .r = r };
    keel_status s = choose(&c, label, r->inputs, r->targets);
    keel_free(c.group[0]);
    return s;
}
