/* Rows that are drawn: synthetic(x=float32(224,224,3),y=int(1000),rows=5000), for trials and for
 * measuring a model without its data.
 *
 * Element k of field f of row i is a function of (seed, i, f, k), so any number of threads draws
 * the same rows. float32 and float64 are uniform in [0, 1), normal is a standard normal, uint8 and
 * bool take all their values, and int(1000,80) is 80 whole numbers from 0 to 999. */
#include "base/memory.h"
#include "data/layout.h"
#include "data/named.h"
#include "data/stored.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <string.h>

enum { ROWS_BITS = 48 }; /* of a row in the key of random numbers */

typedef enum kind { FLOAT32, FLOAT64, NORMAL, UINT8, BOOL, INT, KINDS } kind;

static const struct {
    const char *name, *type;
} kinds[KINDS] = {
    [FLOAT32] = { "float32", "float32" }, [FLOAT64] = { "float64", "float64" },
    [NORMAL] = { "normal", "float32" },   [UINT8] = { "uint8", "uint8" },
    [BOOL] = { "bool", "bool" },          [INT] = { "int", "int32" },
};

typedef struct column {
    keel_stored stored;
    kind kind;
    int64_t limit; /* of an int */
    uint16_t stream;
} column;

typedef struct synthetic {
    keel_chance chance;
    const char *name;
    int n;
    column column[KEEL_FIELDS_MAX];
} synthetic;

/* ---- drawing --------------------------------------------------------------------------------- */

/* Draws elements 4 * block to 4 * block + 3; of uint8 and bool 16 of them. */
static void draw_block(const column *c, const keel_chance *k, uint64_t row, uint32_t block,
                       char *to, int64_t n)
{
    uint32_t w[4];
    double z[4];
    if (c->kind == NORMAL)
        keel_normals(z, k, row, block);
    else
        keel_philox(w, k, row, block);
    for (int64_t i = 0; i < n; i++) switch (c->kind) {
        case FLOAT32:
            ((float *)to)[i] = (float)keel_uniform(w[i]);
            break;
        case FLOAT64:
            ((double *)to)[i] = keel_uniform(w[i]);
            break;
        case NORMAL:
            ((float *)to)[i] = (float)z[i];
            break;
        case UINT8:
            ((uint8_t *)to)[i] = (uint8_t)(w[i / 4] >> 8 * (i % 4));
            break;
        case BOOL:
            ((uint8_t *)to)[i] = w[i / 4] >> 8 * (i % 4) & 1;
            break;
        default:
            ((int32_t *)to)[i] = (int32_t)((uint64_t)w[i] * (uint64_t)c->limit >> 32);
        }
}

static void draw(const synthetic *s, const column *c, int64_t row, char *to)
{
    const int64_t each = c->kind == UINT8 || c->kind == BOOL ? 16 : 4, count = c->stored.count;
    const size_t size = keel_dtype_size(c->stored.type.dtype);
    keel_chance k = s->chance;
    k.stream = c->stream;
    for (int64_t at = 0; at < count; at += each)
        draw_block(c, &k, (uint64_t)row, (uint32_t)(at / each), to + (size_t)at * size,
                   count - at < each ? count - at : each);
}

static keel_status read(const void *state, int64_t index, const keel_row *row, keel_scratch *s)
{
    const synthetic *all = state;
    for (int i = 0; i < all->n; i++) {
        const column *c = &all->column[i];
        if (!row->at[i]) continue;
        char *to = keel_scratch_reserve(s, 0, c->stored.n_bytes);
        if (!to) return KEEL_ENOMEM;
        draw(all, c, index, to);
        KEEL_TRY(
            keel_stored_write(&c->stored, row->at[i], row->want[i], to, 1, index, s, all->name));
    }
    return KEEL_OK;
}

static int64_t needs(const void *state, const keel_dtype *want)
{
    const synthetic *all = state;
    int64_t drawn = 0, converted = 0;
    for (int i = 0; i < all->n; i++) {
        const keel_stored *f = &all->column[i].stored;
        const int64_t n = keel_stored_needs(f, want ? want[i] : f->field.dtype, true);
        if ((int64_t)f->n_bytes > drawn) drawn = (int64_t)f->n_bytes;
        if (n > converted) converted = n;
    }
    return drawn + converted;
}

static void close(void *state)
{
    keel_free(state);
}

/* ---- opening --------------------------------------------------------------------------------- */

static keel_status kind_of(const keel_layout_item *item, column *c, keel_shape *shape)
{
    int k = 0;
    while (k < KINDS && strcmp(item->value, kinds[k].name) != 0) k++;
    if (k == KINDS || *item->order)
        return keel_fail(KEEL_EARG,
                         "synthetic: '%s=%s%s%s'; a field is float32, float64, normal, uint8 or "
                         "bool with the shape of a row, as x=float32(28,28,1), or int with its "
                         "limit first, as y=int(10)",
                         item->name, item->value, *item->order ? ":" : "", item->order);
    c->kind = (kind)k;
    *shape = item->numbers.rank < 0 ? (keel_shape){ 0 } : item->numbers;
    if (k != INT) return KEEL_OK;
    if (shape->rank < 1 || shape->dim[0] > INT32_MAX)
        return keel_fail(KEEL_EARG, "synthetic: '%s=int': give the limit, 1 to %d, as y=int(10)",
                         item->name, INT32_MAX);
    c->limit = shape->dim[0];
    *shape = keel_shape_of(shape->rank - 1, shape->dim + 1);
    return KEEL_OK;
}

static keel_status add(synthetic *s, const keel_layout_item *item, const keel_named_field *f,
                       const keel_dataset_options *o)
{
    column *c = &s->column[s->n];
    keel_npy_header type = { 0 };
    keel_data_field field = { .path = f->path, .role = f->role, .target = f->target };
    KEEL_TRY(kind_of(item, c, &field.shape));
    KEEL_TRY(keel_npy_type_named(&type, kinds[c->kind].type));
    KEEL_TRY(keel_stored_init(&c->stored, &field, &type, false, o, f->choice, "synthetic"));
    if (c->stored.count > INT64_C(4) * UINT32_MAX)
        return keel_fail(KEEL_ESHAPE, "synthetic: a row of '%s' has too many elements", f->path);
    c->stream = (uint16_t)f->array;
    s->n++;
    return KEEL_OK;
}

/* Take rows and seed out of the list; what stays are fields. */
static keel_status take_numbers(keel_layout *l, int64_t *rows, uint64_t *seed)
{
    int n = 0;
    int64_t v = 0;
    for (int i = 0; i < l->n; i++) {
        const keel_layout_item *item = &l->item[i];
        if (!strcmp(item->name, "rows")) {
            KEEL_TRY(keel_layout_number(rows, item, 1, "synthetic"));
        } else if (!strcmp(item->name, "seed")) {
            KEEL_TRY(keel_layout_number(&v, item, 0, "synthetic"));
            *seed = (uint64_t)v;
        } else {
            l->item[n++] = *item;
        }
    }
    l->n = n;
    if (*rows < 1 || *rows >= INT64_C(1) << ROWS_BITS)
        return keel_fail(KEEL_EARG, "synthetic: give the number of rows, as in "
                                    "synthetic(x=float32(28,28,1),y=int(10),rows=1000)");
    return KEEL_OK;
}

static bool claims(const char *spec)
{
    return keel_layout_claims(spec, "synthetic");
}

extern const keel_source keel_source_synthetic;

static keel_status fill(synthetic *s, const char *spec, const keel_dataset_options *o,
                        keel_named *chosen, keel_data_spec *fields)
{
    keel_layout l;
    const char *names[KEEL_FIELDS_MAX];
    KEEL_TRY(keel_layout_read(&l, spec, "synthetic"));
    if (l.rest)
        return keel_fail(KEEL_EARG,
                         "%s: nothing follows the list; it is as "
                         "synthetic(x=float32(28,28,1),y=int(10),rows=1000)",
                         spec);
    KEEL_TRY(take_numbers(&l, &fields->rows, &s->chance.seed));
    for (int i = 0; i < l.n; i++) names[i] = l.item[i].name;
    KEEL_TRY(keel_named_choose(chosen, names, l.n, o, "synthetic"));
    for (int i = 0; i < chosen->n; i++) {
        KEEL_TRY(add(s, &l.item[chosen->field[i].array], &chosen->field[i], o));
        fields->field[i] = s->column[i].stored.field;
    }
    fields->n_field = chosen->n;
    return KEEL_OK;
}

static keel_status open_rows(keel_dataset **out, const char *spec, const keel_dataset_options *o)
{
    keel_named chosen = { .n = 0 };
    keel_dataset *d = NULL;
    keel_data_spec fields = { .yields = -1 };
    synthetic *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    keel_status r = fill(s, spec, o, &chosen, &fields);
    if (r < 0)
        close(s);
    else
        r = keel_dataset_create(&d, &keel_source_synthetic, s, &fields, "synthetic");
    for (int i = 0; r >= 0 && i < s->n; i++) /* the dataset has copied the strings */
        s->column[i].stored.field = d->origin->spec.field[i];
    if (r >= 0) s->name = d->origin->name;
    if (r >= 0 && !chosen.held_out) r = keel_dataset_take_subset(&d, o);
    keel_named_free(&chosen);
    if (r < 0)
        keel_dataset_destroy(d);
    else
        *out = d;
    return r;
}

const keel_source keel_source_synthetic = {
    .name = "synthetic",
    .help = "synthetic(x=float32(28,28,1),y=int(10),rows=1000)",
    .prefix = "synthetic",
    .claims = claims,
    .open = open_rows,
    .read = read,
    .needs = needs,
    .close = close,
};
