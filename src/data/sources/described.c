/* A stream that another process reads (keel/described.h): its description as JSON, and a source of
 * which only the fields are there. */
#include "keel/described.h"
#include "base/memory.h"
#include "data/sources/described.h"
#include "data/stage.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 64 << 20, NAME_MAX_BYTES = 4096 };

/* ---- written --------------------------------------------------------------------------------- */

/* NULL: out of memory, or not UTF-8. */
static json_t *field_json(const keel_data_field *f)
{
    json_t *dims = json_array();
    for (int d = 0; d < f->shape.rank; d++)
        json_array_append_new(dims, json_integer(f->shape.dim[d]));
    json_t *j = json_pack("{s:s, s:i, s:i, s:o}", "path", f->path, "dtype", (int)f->dtype, "role",
                          (int)f->role, "shape", dims);
    if (j && f->target && json_object_set_new(j, "target", json_string(f->target))) {
        json_decref(j);
        return NULL;
    }
    return j;
}

static json_t *spec_json(const keel_dataset *d, const char *stages)
{
    const keel_data_spec *s = &d->origin->spec;
    json_t *fields = json_array(), *classes = json_array();
    bool good = fields && classes;
    for (int i = 0; i < s->n_field; i++)
        good = good && !json_array_append_new(fields, field_json(&s->field[i]));
    for (int64_t i = 0; i < s->n_classes; i++)
        good = good && !json_array_append_new(classes, json_string(s->class_names[i]));
    json_t *j =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:b, s:b, s:o, s:o}", "name",
                  keel_dataset_name(d), "stages", stages, "rows", (json_int_t)d->rows, "max_rows",
                  (json_int_t)s->max_rows, "yields", (json_int_t)s->yields, "one_shot", s->one_shot,
                  "endless", s->endless, "shaped", s->shaped, "by_row", s->by_row, "by_pass",
                  s->by_pass, "batched", s->batched, "fields", fields, "classes", classes);
    if (j && good) return j;
    json_decref(j);
    return NULL;
}

keel_status keel_dataset_describe(const keel_dataset *d, keel_tensor *out)
{
    keel_text stages = { 0 };
    if (!d->origin->source->next) return KEEL_END;
    keel_stage_describe(d, &stages);
    json_t *j = stages.failed ? NULL : spec_json(d, stages.length ? stages.data : "");
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    keel_status s = text ? KEEL_OK
                         : keel_fail(KEEL_EUNSUP,
                                     "%s: its fields cannot be sent to other processes: a name is "
                                     "not UTF-8, or there is no memory",
                                     keel_dataset_name(d));
    if (s >= 0) {
        const keel_shape shape = { 1, { (int64_t)strlen(text) } };
        s = keel_tensor_create(out, KEEL_UINT8, &shape);
        if (s >= 0) memcpy(out->data, text, strlen(text));
    }
    free(text);
    json_decref(j);
    keel_text_free(&stages);
    return s;
}

/* ---- read ------------------------------------------------------------------------------------ */

static keel_status no_description(const char *what)
{
    return keel_fail(KEEL_EFORMAT, "this is no description of data: %s", what);
}

static keel_status read_field(const json_t *j, keel_data_field *f)
{
    json_t *shape = NULL;
    int dtype, role;
    if (json_unpack((json_t *)j, "{s:s, s:i, s:i, s:o, s?s}", "path", &f->path, "dtype", &dtype,
                    "role", &role, "shape", &shape, "target", &f->target) ||
        !json_is_array(shape) || json_array_size(shape) > KEEL_RANK_MAX || dtype < 0 ||
        dtype >= KEEL_DTYPE_COUNT || role < 0 || role > KEEL_ROLE_WEIGHT)
        return no_description("a field has no path, type, role or shape");
    f->dtype = (keel_dtype)dtype;
    f->role = (keel_data_role)role;
    f->shape.rank = (int)json_array_size(shape);
    for (int d = 0; d < f->shape.rank; d++) {
        const json_t *dim = json_array_get(shape, (size_t)d);
        f->shape.dim[d] = json_integer_value(dim);
        if (!json_is_integer(dim) || (f->shape.dim[d] < 1 && f->shape.dim[d] != KEEL_DIM_OPEN))
            return no_description("a shape is none");
    }
    return KEEL_OK;
}

static keel_status read_numbers(const json_t *j, keel_data_spec *spec)
{
    json_int_t rows, most, yields;
    int b[6];
    if (json_unpack((json_t *)j, "{s:I, s:I, s:I, s:b, s:b, s:b, s:b, s:b, s:b}", "rows", &rows,
                    "max_rows", &most, "yields", &yields, "one_shot", &b[0], "endless", &b[1],
                    "shaped", &b[2], "by_row", &b[3], "by_pass", &b[4], "batched", &b[5]) ||
        rows < -1 || most < 1 || most > INT32_MAX || yields < -1)
        return no_description("it does not say how many rows there are");
    spec->rows = rows;
    spec->max_rows = most;
    spec->yields = yields;
    spec->one_shot = b[0];
    spec->endless = b[1];
    spec->shaped = b[2];
    spec->by_row = b[3];
    spec->by_pass = b[4];
    spec->batched = b[5];
    return KEEL_OK;
}

static keel_status read_classes(const json_t *classes, keel_data_spec *spec)
{
    const size_t n = json_array_size(classes);
    if (!json_is_array(classes)) return no_description("it has no list of classes");
    if (n == 0) return KEEL_OK;
    if (!(spec->class_names = keel_calloc(n, sizeof *spec->class_names))) return KEEL_ENOMEM;
    for (; (size_t)spec->n_classes < n; spec->n_classes++) {
        const char *name = json_string_value(json_array_get(classes, (size_t)spec->n_classes));
        if (!name) return no_description("a class has no name");
        spec->class_names[spec->n_classes] = keel_strdup(name);
        if (!spec->class_names[spec->n_classes]) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

static keel_status read_spec(const json_t *j, keel_data_spec *spec)
{
    const json_t *fields = json_object_get(j, "fields");
    const size_t n = json_array_size(fields);
    KEEL_TRY(read_numbers(j, spec));
    if (n < 1 || n > KEEL_FIELDS_MAX) return no_description("it has no fields, or too many");
    for (spec->n_field = 0; (size_t)spec->n_field < n; spec->n_field++)
        KEEL_TRY(
            read_field(json_array_get(fields, (size_t)spec->n_field), &spec->field[spec->n_field]));
    return read_classes(json_object_get(j, "classes"), spec);
}

keel_status keel_dataset_from_description(keel_dataset **out, const void *text, size_t n_bytes)
{
    keel_data_spec spec = { 0 };
    const char *name = NULL, *stages = NULL;
    json_t *j = n_bytes > TEXT_MAX ? NULL : json_loadb(text, n_bytes, 0, NULL);
    char *state = NULL;
    keel_status s = KEEL_OK;
    if (!j || json_unpack(j, "{s:s, s:s}", "name", &name, "stages", &stages) ||
        strlen(name) > NAME_MAX_BYTES)
        s = no_description("it has no name");
    if (s >= 0) s = read_spec(j, &spec);
    if (s >= 0 && !(state = keel_strdup(stages))) s = KEEL_ENOMEM;
    if (s >= 0) {
        s = keel_dataset_create(out, &keel_source_described, state, &spec, name);
    } else {
        for (int64_t i = 0; i < spec.n_classes; i++) keel_free(spec.class_names[i]);
        keel_free(spec.class_names);
    }
    json_decref(j);
    return s;
}

/* ---- the source ------------------------------------------------------------------------------ */

static keel_status refuse(void)
{
    return keel_fail(KEEL_EARG,
                     "the rows of this data are in process 0 of a group, which reads them "
                     "for all: give it to fit, evaluate or predict as it is");
}

static keel_status begin(void *state, uint32_t pass, const keel_chance *order)
{
    (void)state, (void)pass, (void)order;
    return refuse();
}

static keel_status next(void *state, void *const *field, int64_t *rows)
{
    (void)state, (void)field, (void)rows;
    return refuse();
}

static keel_status next_shaped(void *state, const void **data, keel_shape *shape, int64_t *rows)
{
    (void)state, (void)data, (void)shape, (void)rows;
    return refuse();
}

static void close(void *state)
{
    keel_free(state);
}

const keel_source keel_source_described = {
    .name = "described",
    .begin = begin,
    .next = next,
    .next_shaped = next_shaped,
    .close = close,
};
