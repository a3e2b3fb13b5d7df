/* Which key of JSON lines becomes which field, and of which shape. Options name keys as they name
 * columns of a CSV. By default key x is the input and y the target; without x, all keys of the
 * first object except the label are the numbers of x. */
#include "base/memory.h"
#include "base/text.h"
#include "data/sources/jsonl.h"
#include "tensor/shape.h"
#include <string.h>

enum { PARTS_MAX = 1 << 20 };

const json_t *keel_jsonl_find(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    for (const char *dot = strchr(key, '.'); !v && dot; dot = strchr(dot + 1, '.')) {
        char head[256];
        const size_t n = (size_t)(dot - key);
        if (n >= sizeof head) break;
        memcpy(head, key, n);
        head[n] = 0;
        const json_t *inner = json_object_get(object, head);
        if (json_is_object(inner)) return keel_jsonl_find(inner, dot + 1);
    }
    return json_is_null(v) ? NULL : v;
}

/* ---- which key goes where ---------------------------------------------------------------------
 */

/* True if a key is one of the first n parts, of a field of that role. */
static bool is_taken(const keel_jsonl_reader *r, const char *key, keel_data_role role, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (r->field[r->part[i].field].role == role && !strcmp(r->part[i].key, key)) return true;
    return false;
}

static keel_status add_part(keel_jsonl_reader *r, const char *key)
{
    keel_table_field *f = &r->field[r->n_field - 1];
    if (r->n_part == PARTS_MAX)
        return keel_fail(KEEL_EFORMAT, "%s: more than %d keys", r->table.name, PARTS_MAX);
    if (r->n_part == r->part_room) {
        const int64_t room = r->part_room ? 2 * r->part_room : 16;
        keel_jsonl_part *more = keel_grow(r->part, (size_t)room, sizeof *more);
        if (!more) return KEEL_ENOMEM;
        r->part = more;
        r->part_room = room;
    }
    const bool input = f->role == KEEL_ROLE_INPUT;
    r->part[r->n_part++] =
        (keel_jsonl_part){ .key = key,
                           .field = r->n_field - 1,
                           .at = (int32_t)f->width++,
                           .words = input ? keel_table_words_of(&r->table, key) : -1 };
    if (!f->column) f->column = key;
    return KEEL_OK;
}

static keel_status add_field(keel_jsonl_reader *r, const char *path, keel_data_role role)
{
    if (r->n_field == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "%s: a row has at most %d fields", r->table.name,
                         KEEL_FIELDS_MAX);
    r->field[r->n_field++] = (keel_table_field){ .path = path, .role = role };
    return KEEL_OK;
}

/* Take the fields of a list. *none: there is no list, or it has a model's names and no keys of the
 * first object. */
static keel_status take_list(keel_jsonl_reader *r, const keel_choice *list, int n,
                             keel_data_role role, const json_t *first, bool *none)
{
    bool plain = true, here = true;
    for (int i = 0; i < n; i++) {
        if (list[i].plain && !keel_jsonl_find(first, list[i].name)) here = false;
        plain &= list[i].plain;
    }
    *none = n == 0 || (plain && !here);
    for (int i = 0; !*none && i < n; i++) {
        KEEL_TRY(add_field(r, list[i].name, role));
        for (int k = 0; k < list[i].n_part; k++) {
            /* by the name of a model's input alone, nobody has asked for a target among inputs */
            if (is_taken(r, list[i].part[k], role, r->n_part) ||
                (plain && is_taken(r, list[i].part[k], KEEL_ROLE_TARGET, r->n_part)))
                return keel_fail(KEEL_EARG, "%s: key '%s' is requested twice", r->table.name,
                                 list[i].part[k]);
            KEEL_TRY(add_part(r, list[i].part[k]));
        }
    }
    return KEEL_OK;
}

/* Targets are taken first, since the keys that remain may be the only input. */
static keel_status choose_targets(keel_jsonl_reader *r, const char *label, const json_t *first)
{
    const int n = r->o->n_target;
    bool none;
    KEEL_TRY(take_list(r, r->targets, n, KEEL_ROLE_TARGET, first, &none));
    if (!none && label)
        return keel_fail(KEEL_EARG, "%s: give either a label or a list of targets, not both",
                         r->table.name);
    if (!none) return KEEL_OK;
    if (!label && !json_object_get(first, "y")) return KEEL_OK;
    if (n > 1)
        return keel_fail(KEEL_EARG, "%s: %d targets and one label; give the key of each, as %s=KEY",
                         r->table.name, n, r->targets[0].name);
    KEEL_TRY(add_field(r, n ? r->targets[0].name : "y", KEEL_ROLE_TARGET));
    return add_part(r, label ? label : "y");
}

static keel_status add_weights(keel_jsonl_reader *r, const char *path, const char *key,
                               const char *target)
{
    if (is_taken(r, key, KEEL_ROLE_TARGET, r->n_part))
        return keel_fail(KEEL_EARG, "%s: key '%s' is requested twice", r->table.name, key);
    KEEL_TRY(add_field(r, path, KEEL_ROLE_WEIGHT));
    r->field[r->n_field - 1].target = target;
    return add_part(r, key);
}

static keel_status choose_weights(keel_jsonl_reader *r)
{
    if (r->o->sample_weight) return add_weights(r, "sample_weight", r->o->sample_weight, NULL);
    for (int i = 0; i < r->o->n_sample_weight; i++) {
        const keel_choice *w = &r->weights[i];
        KEEL_TRY(add_weights(r, w->name, w->part[0], w->target));
    }
    return KEEL_OK;
}

/* All keys that are not taken; copied, since the first object does not last. */
static keel_status take_the_rest(keel_jsonl_reader *r, const json_t *first)
{
    const char *key;
    json_t *value, *object = (json_t *)first; /* the macro has no const */
    const int64_t n_taken = r->n_part;        /* the inputs behind them may be many */
    size_t size = 0;
    json_object_foreach(object, key, value) size += strlen(key) + 1;
    char *to = r->default_keys = keel_calloc(size + 1, 1);
    if (!to) return KEEL_ENOMEM;
    json_object_foreach(object, key, value)
    {
        if (is_taken(r, key, KEEL_ROLE_TARGET, n_taken) ||
            is_taken(r, key, KEEL_ROLE_WEIGHT, n_taken))
            continue;
        memcpy(to, key, strlen(key) + 1);
        KEEL_TRY(add_part(r, to));
        to += strlen(key) + 1;
    }
    if (r->field[r->n_field - 1].width) return KEEL_OK;
    return keel_fail(KEEL_EFORMAT, "%s:%lld: no key except the label", r->path, (long long)r->line);
}

static keel_status choose_inputs(keel_jsonl_reader *r, const json_t *first)
{
    const int n = r->o->n_input;
    bool none;
    KEEL_TRY(take_list(r, r->inputs, n, KEEL_ROLE_INPUT, first, &none));
    if (!none) return KEEL_OK;
    if (n > 1)
        return keel_fail(KEEL_EARG, "%s: %d inputs; give the key of each, as %s=KEY", r->table.name,
                         n, r->inputs[0].name);
    KEEL_TRY(add_field(r, n ? r->inputs[0].name : "x", KEEL_ROLE_INPUT));
    if (json_object_get(first, "x") && !is_taken(r, "x", KEEL_ROLE_TARGET, r->n_part))
        return add_part(r, "x");
    return take_the_rest(r, first);
}

keel_status keel_jsonl_choose(keel_jsonl_reader *r, const char *label, const json_t *first)
{
    KEEL_TRY(choose_targets(r, label, first));
    KEEL_TRY(choose_weights(r));
    return choose_inputs(r, first);
}

/* ---- shapes -----------------------------------------------------------------------------------
 */

/* The shape of nested lists by their first elements; the rest is checked when they are read. *leaf:
 * the first that is no list; NULL: a list is empty. */
static keel_status shape_of(const keel_jsonl_reader *r, const char *key, const json_t *v,
                            keel_shape *shape, const json_t **leaf)
{
    for (*shape = (keel_shape){ 0 }; json_is_array(v); v = json_array_get(v, 0)) {
        if (shape->rank == KEEL_RANK_MAX - 1)
            return keel_fail(KEEL_EFORMAT, "%s:%lld: key '%s' has lists in more than %d levels",
                             r->path, (long long)r->line, key, KEEL_RANK_MAX - 1);
        shape->dim[shape->rank++] = (int64_t)json_array_size(v);
        if (!json_array_size(v))
            return keel_fail(KEEL_EFORMAT, "%s:%lld: key '%s' has an empty list", r->path,
                             (long long)r->line, key);
    }
    *leaf = v;
    if (keel_shape_check(shape, sizeof(keel_string)) < 0 ||
        (size_t)keel_shape_count(shape) > r->n_bytes) /* so the line cannot have all elements */
        return keel_fail(KEEL_EFORMAT, "%s:%lld: key '%s' has lists that differ in length", r->path,
                         (long long)r->line, key);
    return KEEL_OK;
}

keel_status keel_jsonl_decide(keel_jsonl_reader *r, const json_t *object, bool *all)
{
    *all = true;
    for (int64_t i = 0; i < r->n_part; i++) {
        keel_jsonl_part *p = &r->part[i];
        const json_t *v = p->decided ? NULL : keel_jsonl_find(object, p->key), *leaf = NULL;
        if (p->decided) continue;
        *all = false;
        if (!v) continue;
        if (json_is_object(v))
            return keel_fail(KEEL_EFORMAT,
                             "%s:%lld: key '%s' has an object; name one of its keys, as '%s.KEY'",
                             r->path, (long long)r->line, p->key, p->key);
        KEEL_TRY(shape_of(r, p->key, v, &p->shape, &leaf));
        p->list = json_is_array(v);
        p->text = json_is_string(leaf);
        p->path = r->path;
        p->line = r->line;
        p->decided = !json_is_null(leaf); /* a list may begin with null */
    }
    return KEEL_OK;
}

static bool may_be_text(const keel_jsonl_reader *r, const keel_table_field *f)
{
    return f->role == KEEL_ROLE_INPUT && r->o->n_input > 0;
}

/* Shape and cells of a field of the parts [begin, end). */
static keel_status finish_field(keel_jsonl_reader *r, keel_table_field *f, int64_t begin,
                                int64_t end)
{
    const keel_jsonl_part *p = &r->part[begin];
    const bool one = end - begin == 1;
    bool texts = true;
    f->shape = (keel_shape){ 1, { f->width } };
    for (int64_t i = begin; i < end; i++) {
        if (r->part[i].list && !one)
            return keel_fail(KEEL_EUNSUP,
                             "%s:%lld: key '%s' has a list; an input of several keys takes one "
                             "number or text of each",
                             r->part[i].path, (long long)r->part[i].line, r->part[i].key);
        texts &= r->part[i].text && r->part[i].words < 0;
    }
    if (p->list) {
        f->shape = p->shape;
        f->width = keel_shape_count(&f->shape);
    }
    f->cells = texts && may_be_text(r, f) ? KEEL_CELLS_TEXTS : KEEL_CELLS_NUMBERS;
    if (f->role == KEEL_ROLE_WEIGHT && p->list)
        return keel_fail(KEEL_EFORMAT,
                         "%s:%lld: key '%s' has a list; the weight of a row is one "
                         "number",
                         p->path, (long long)p->line, p->key);
    if (f->role != KEEL_ROLE_INPUT && one && !p->list) f->shape = (keel_shape){ 0 };
    if (f->role == KEEL_ROLE_TARGET && one && !p->list) f->cells = KEEL_CELLS_LABELS;
    return KEEL_OK;
}

keel_status keel_jsonl_add_fields(keel_jsonl_reader *r)
{
    for (int64_t begin = 0, end; begin < r->n_part; begin = end) {
        keel_table_field *f = &r->field[r->part[begin].field];
        for (end = begin + 1; end < r->n_part && r->part[end].field == r->part[begin].field;) end++;
        KEEL_TRY(finish_field(r, f, begin, end));
        KEEL_TRY(keel_table_add(&r->table, f));
    }
    for (int64_t i = 0; i < r->n_part; i++) {
        const keel_jsonl_part *p = &r->part[i];
        if (p->words >= 0 && p->list)
            return keel_fail(KEEL_EUNSUP, "%s:%lld: key '%s' has a list and a vocabulary", p->path,
                             (long long)p->line, p->key);
        if (p->words >= 0) keel_table_use_words(&r->table, p->words, p->field, p->at);
    }
    return keel_table_check_words(&r->table);
}
