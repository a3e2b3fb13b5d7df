/* tf.data's enumerate: the number of each row becomes a field of it, the first one. */
#include "data/iter.h"
#include "data/stage.h"
#include <string.h>

typedef struct enumerate_args {
    int64_t start;
    char *field;
} enumerate_args;

static int64_t number(const keel_applied *s, const keel_position *at)
{
    return (int64_t)((uint64_t)((const enumerate_args *)s->args)->start + (uint64_t)at->index);
}

static keel_status infer(keel_applied *s, keel_data_spec *spec)
{
    const enumerate_args *a = s->args;
    const int n = spec->n_field;
    if (spec->batched)
        return keel_fail(KEEL_EUNSUP, "a number of a whole batch is no field of its rows: put it "
                                      "before the batches");
    for (int i = 0; i < n; i++)
        if (!strcmp(spec->field[i].path, a->field))
            return keel_fail(KEEL_EARG, "there is a field '%s' already: give another name by field",
                             a->field);
    if (n == KEEL_FIELDS_MAX)
        return keel_fail(KEEL_EARG, "a row has at most %d fields", KEEL_FIELDS_MAX);
    memmove(spec->field + 1, spec->field, (size_t)n * sizeof *spec->field);
    spec->field[0] =
        (keel_data_field){ .path = a->field, .dtype = KEEL_INT64, .role = KEEL_ROLE_INPUT };
    spec->n_field++;
    return KEEL_OK;
}

static keel_status read(const keel_applied *s, keel_position at, const keel_row *row,
                        keel_scratch *scratch)
{
    const int64_t i = number(s, &at);
    keel_row rest = { .want = row->want + 1, .count = row->count + 1 };
    memcpy(rest.at, row->at + 1, (size_t)(s->spec->n_field - 1) * sizeof *rest.at);
    if (row->at[0]) KEEL_TRY(keel_field_write(row->at[0], row->want[0], &i, &s->spec->field[0], 1));
    keel_scratch *inner = keel_scratch_inner(scratch);
    return inner ? keel_dataset_read(s->parent[0], keel_stage_into(s, 0, &at), &rest, inner)
                 : KEEL_ENOMEM;
}

static int64_t length(const keel_applied *s, int i, keel_position at)
{
    return i ? keel_dataset_length(s->parent[0], i - 1, keel_stage_into(s, 0, &at)) : 0;
}

static int length_from(const keel_applied *s, int *i)
{
    (void)s;
    if (!*i) return -1;
    --*i;
    return 0;
}

typedef struct enumerate_iter {
    keel_element *in; /* kept where there was no memory for the result */
} enumerate_iter;

static keel_status next(keel_iter *it, keel_element **out)
{
    enumerate_iter *w = it->own;
    const int64_t i = number(it->applied, &it->at);
    const void *data[KEEL_FIELDS_MAX] = { &i };
    keel_shape shape[KEEL_FIELDS_MAX] = { it->spec->field[0].shape };
    if (!w->in) {
        const keel_status s = keel_iter_next(it->parent[0], &w->in);
        if (s != KEEL_OK) return s;
    }
    for (int k = 0; k < w->in->n_field; k++) {
        data[k + 1] = w->in->field[k].data;
        shape[k + 1] = w->in->field[k].shape;
    }
    KEEL_TRY(keel_element_copy(out, it->run->account, it->spec, data, shape));
    (*out)->place = w->in->place;
    keel_element_release(w->in);
    w->in = NULL;
    return KEEL_OK;
}

static void end(keel_iter *it)
{
    enumerate_iter *w = it->own;
    keel_element_release(w->in);
    w->in = NULL;
}

#define T enumerate_args
static const keel_field fields[] = {
    KEEL_INT(T, start, "0", -1e18, 1e18, "number of the first row"),
    KEEL_STRING(T, field, "\"index\"", "name of the field, an input"),
    { .key = NULL },
};

const keel_stage keel_stage_enumerate = {
    .type = { .name = "enumerate",
              .module = "keel.data",
              .help = "The number of each row as a field.",
              .args_size = sizeof(enumerate_args),
              .fields = fields },
    .n_parent = 1,
    .rowwise = true,
    .infer = infer,
    .read = read,
    .length = length,
    .length_from = length_from,
    .iter_size = sizeof(enumerate_iter),
    .next = next,
    .end = end,
};
