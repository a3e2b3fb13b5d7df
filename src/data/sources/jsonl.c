/* JSON lines: an object a line, whose keys become the fields of a row: numbers, truth values,
 * texts, and nested lists of one shape. Empty lines are skipped.
 *
 * The file is read whole when it is opened, as CSV is: rows are then arrays, and no epoch parses
 * them again. It is read line by line, so its text need not fit in memory. */
#include "data/sources/jsonl.h"
#include "base/c_locale.h"
#include "base/memory.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FLOAT_END 0x1.ffffffp127 /* from here on, a number rounds to an infinite float32 */

/* ---- lines ------------------------------------------------------------------------------------
 */

/* A few bytes of text can need hundreds of bytes in memory. */
static keel_status check_cost(const keel_jsonl_reader *r, const char *text, size_t n)
{
    const size_t object = 256, array = 128, entry = 64, most = (size_t)256 << 20;
    size_t cost = 0;
    bool quoted = false;
    if (n < 1 << 20) return KEEL_OK; /* at most 256 MiB */
    for (size_t i = 0; i < n && cost <= most; i++) {
        const char c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
            continue;
        }
        quoted = c == '"';
        cost += c == '{' ? object : c == '[' ? array : c == ',' || c == ':' ? entry : 0;
    }
    if (cost <= most) return KEEL_OK;
    return keel_fail(KEEL_EUNSUP, "%s:%lld: the values of this line would take more than %zu MiB",
                     r->path, (long long)r->line, most >> 20);
}

static keel_status not_json(const keel_jsonl_reader *r, const json_error_t *e)
{
    const bool nan = strstr(e->text, "'NaN'") || strstr(e->text, "Infinity'");
    return keel_fail(KEEL_EFORMAT, "%s:%lld: not JSON at byte %d: %s%s", r->path,
                     (long long)r->line, e->position, e->text,
                     nan ? "; JSON has no NaN: write null for a missing value" : "");
}

/* Parse a line into *out, which the caller releases; NULL: an empty one. */
static keel_status parse(const keel_jsonl_reader *r, const char *text, size_t n, json_t **out)
{
    json_error_t error;
    *out = NULL;
    if (strspn(text, " \t\r") == n) return KEEL_OK;
    KEEL_TRY(check_cost(r, text, n));
    json_t *v = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (!v && json_error_code(&error) == json_error_out_of_memory)
        return keel_fail(KEEL_ENOMEM, "%s:%lld: out of memory", r->path, (long long)r->line);
    if (!v && r->line == 1 && strspn(text, "[{ \t") == n)
        return keel_fail(KEEL_EFORMAT,
                         "%s: is one JSON value over several lines; write an object a line, as "
                         "'jq -c .[]' does",
                         r->path);
    if (!v) return not_json(r, &error);
    if (!json_is_object(v)) {
        json_decref(v);
        return keel_fail(KEEL_EFORMAT,
                         "%s:%lld: a line must be an object: {\"x\": [1, 2], \"y\": 0}", r->path,
                         (long long)r->line);
    }
    *out = v;
    return KEEL_OK;
}

/* ---- cells ------------------------------------------------------------------------------------
 */

static keel_status wrong(const keel_jsonl_reader *r, const keel_jsonl_part *p, const json_t *v)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a text",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    const keel_cells cells = r->table.field[p->field].cells;
    const char *want = p->list ? "a list" : cells == KEEL_CELLS_TEXTS ? "a text" : "a number";
    if (json_is_string(v))
        return keel_fail(KEEL_EFORMAT, "%s:%lld: key '%s' has '%.40s', which is not a number",
                         r->path, (long long)r->line, p->key, json_string_value(v));
    return keel_fail(KEEL_EFORMAT, "%s:%lld: key '%s' has %s where line %lld has %s", r->path,
                     (long long)r->line, p->key, kinds[json_typeof(v)], (long long)p->line, want);
}

static keel_cell cell_of(const keel_jsonl_reader *r, const keel_jsonl_part *p, const char *text)
{
    return (keel_cell){ r->path, r->line, p->key, text };
}

/* Add one value as element `at`; NULL: it is missing. */
static keel_status add_one(keel_jsonl_reader *r, const keel_jsonl_part *p, int64_t at,
                           const json_t *v)
{
    keel_table *t = &r->table;
    keel_table_field *f = &t->field[p->field];
    if (!v || json_is_null(v)) {
        const keel_cell none = cell_of(r, p, NULL);
        return keel_table_missing(t, f, at, &none);
    }
    if (f->cells == KEEL_CELLS_TEXTS) {
        if (!json_is_string(v)) return wrong(r, p, v);
        const char *text = json_string_value(v);
        const keel_cell cell = cell_of(r, p, text);
        if (r->o->missing == KEEL_MISSING_DROP && keel_table_is_missing(text))
            return keel_table_missing(t, f, at, &cell);
        return keel_table_text(t, f, at, text, json_string_length(v));
    }
    if (json_is_boolean(v)) return keel_table_number(t, f, at, json_is_true(v), json_is_true(v));
    if (json_is_integer(v)) {
        const int64_t n = json_integer_value(v);
        return keel_table_number(t, f, at, (double)n, n);
    }
    if (!json_is_real(v)) return wrong(r, p, v);
    const double x = json_real_value(v);
    if (!(fabs(x) < FLOAT_END))
        return keel_fail(KEEL_EFORMAT, "%s:%lld: key '%s' has %g, which float32 cannot hold",
                         r->path, (long long)r->line, p->key, x);
    return keel_table_number(t, f, at, x, fabs(x) < 0x1p63 ? (int64_t)x : 0);
}

/* The elements of nested lists, in order; each list must be as long as in the row that gave the
 * shape. */
static keel_status add_list(keel_jsonl_reader *r, const keel_jsonl_part *p, const json_t *v,
                            int dim, int64_t *at)
{
    const keel_shape *shape = &r->table.field[p->field].shape;
    if (!json_is_array(v)) return wrong(r, p, v);
    const size_t n = json_array_size(v);
    if ((int64_t)n != shape->dim[dim])
        return keel_fail(KEEL_ESHAPE,
                         "%s:%lld: key '%s' has a list of %zu, where line %lld has %lld; rows must "
                         "have one shape",
                         r->path, (long long)r->line, p->key, n, (long long)p->line,
                         (long long)shape->dim[dim]);
    for (size_t i = 0; i < n; i++)
        if (dim + 1 < shape->rank)
            KEEL_TRY(add_list(r, p, json_array_get(v, i), dim + 1, at));
        else
            KEEL_TRY(add_one(r, p, (*at)++, json_array_get(v, i)));
    return KEEL_OK;
}

/* A label or a word: numbers as they would be written in a CSV. */
static keel_status add_text(keel_jsonl_reader *r, const keel_jsonl_part *p, const json_t *v)
{
    char number[32];
    const char *text = json_string_value(v);
    if (json_is_integer(v) || json_is_boolean(v)) {
        const long long n = json_is_integer(v) ? json_integer_value(v) : json_is_true(v);
        snprintf(number, sizeof number, "%lld", n);
        text = number;
    } else if (json_is_real(v)) {
        keel_snprintf(number, sizeof number, "%.17g", json_real_value(v));
        text = number;
    } else if (v && !text) {
        return wrong(r, p, v);
    }
    const keel_cell cell = cell_of(r, p, text);
    if (p->words >= 0) return keel_table_word(&r->table, p->words, &cell);
    return keel_table_label(&r->table, &r->table.field[p->field], &cell);
}

static keel_status add_row(keel_jsonl_reader *r, const json_t *object)
{
    keel_table *t = &r->table;
    KEEL_TRY(keel_table_begin_row(t));
    for (int64_t i = 0; i < r->n_part; i++) {
        const keel_jsonl_part *p = &r->part[i];
        const json_t *v = keel_jsonl_find(object, p->key);
        int64_t at = 0;
        if (t->field[p->field].cells == KEEL_CELLS_LABELS || p->words >= 0)
            KEEL_TRY(add_text(r, p, v));
        else if (p->list && v)
            KEEL_TRY(add_list(r, p, v, 0, &at));
        else if (p->list && r->o->missing != KEEL_MISSING_DROP)
            return keel_fail(KEEL_EFORMAT,
                             "%s:%lld: key '%s' has no value; lists are not filled; such rows are "
                             "left out with --missing drop",
                             r->path, (long long)r->line, p->key);
        else
            KEEL_TRY(add_one(r, p, p->at, v));
    }
    keel_table_end_row(t);
    return KEEL_OK;
}

/* ---- files ------------------------------------------------------------------------------------
 */

typedef struct input { /* files, or one text in memory */
    const keel_file_list *files;
    const char *text, *what;
    size_t n_bytes;
} input;

static keel_status open_lines(keel_lines **out, const input *in, int64_t i)
{
    return in->files ? keel_lines_open(out, in->files->path[i])
                     : keel_lines_open_memory(out, in->text, in->n_bytes, in->what);
}

/* Give each object to `take` until that says *over. */
static keel_status for_each(keel_jsonl_reader *r, const input *in,
                            keel_status (*take)(keel_jsonl_reader *r, const json_t *object,
                                                const char *label, bool *over),
                            const char *label)
{
    bool over = false;
    keel_status s = KEEL_OK;
    for (int64_t i = 0; s >= 0 && !over && i < (in->files ? in->files->n : 1); i++) {
        keel_lines *lines = NULL;
        char *line;
        size_t n;
        r->path = in->files ? in->files->path[i] : in->what;
        KEEL_TRY(open_lines(&lines, in, i));
        while (!over && (s = keel_lines_next(lines, &line, &n)) == KEEL_OK) {
            json_t *object = NULL;
            r->line = keel_lines_number(lines);
            r->n_bytes = n;
            if ((s = parse(r, line, n, &object)) < 0) break;
            if (object) s = take(r, object, label, &over);
            json_decref(object);
            if (s < 0) break;
        }
        keel_lines_close(lines);
    }
    return s < 0 ? s : KEEL_OK;
}

/* The first objects decide which keys there are, and of which shape. */
static keel_status decide(keel_jsonl_reader *r, const json_t *object, const char *label, bool *over)
{
    if (!r->n_field) KEEL_TRY(keel_jsonl_choose(r, label, object));
    return keel_jsonl_decide(r, object, over);
}

static keel_status take_row(keel_jsonl_reader *r, const json_t *object, const char *label,
                            bool *over)
{
    (void)label, (void)over;
    return add_row(r, object);
}

static keel_status read_all(keel_dataset **out, keel_jsonl_reader *r, const input *in,
                            const char *label, const char *name)
{
    KEEL_TRY(keel_table_init(&r->table, r->o, name, "key"));
    KEEL_TRY(keel_choices_read(&r->inputs, r->o->inputs, r->o->n_input, "inputs"));
    KEEL_TRY(keel_choices_read(&r->targets, r->o->targets, r->o->n_target, "label"));
    KEEL_TRY(keel_choices_weights(&r->weights, r->o));
    KEEL_TRY(for_each(r, in, decide, label));
    if (!r->n_field) return keel_fail(KEEL_EDATA, "%s: no rows", name);
    KEEL_TRY(keel_jsonl_add_fields(r));
    KEEL_TRY(for_each(r, in, take_row, label));
    return keel_table_dataset(out, &r->table);
}

static keel_status read_input(keel_dataset **out, const input *in, const char *label,
                              const keel_dataset_options *o, const char *name)
{
    keel_jsonl_reader r = { .o = o };
    const keel_status s = read_all(out, &r, in, label, name);
    keel_table_free(&r.table);
    keel_choices_free(r.inputs, o->n_input);
    keel_choices_free(r.targets, o->n_target);
    keel_choices_free(r.weights, o->n_sample_weight);
    keel_free(r.default_keys);
    keel_free(r.part);
    return s;
}

keel_status keel_jsonl_decode(keel_dataset **out, const char *text, size_t n_bytes,
                              const char *label, const keel_dataset_options *o, const char *what)
{
    const input in = { .text = text, .n_bytes = n_bytes, .what = what };
    return read_input(out, &in, label, o, what);
}

static bool claims(const char *spec)
{
    return keel_file_list_claims(spec, keel_jsonl_endings);
}

static keel_status open_spec(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_file_list files = { 0 };
    keel_dataset *d = NULL;
    KEEL_TRY(keel_file_list_find(&files, spec, keel_jsonl_endings));
    const input in = { .files = &files };
    keel_status s = read_input(&d, &in, o->label, o, spec);
    keel_file_list_free(&files);
    if (s >= 0) s = keel_dataset_take_subset(&d, o);
    if (s < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return s;
}

const keel_source keel_source_jsonl = {
    .name = "jsonl",
    .help = "a .jsonl or .ndjson file with an object a line (.gz too), or a folder or pattern of "
            "them",
    .claims = claims,
    .open = open_spec,
};
