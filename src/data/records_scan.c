/* What is learned of the fields of records by reading all rows: their lengths, texts and labels;
 * see records.h. */
#include "base/memory.h"
#include "base/text.h"
#include "data/records.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX ((size_t)1 << 30) /* bytes of a field's texts, which are held in memory */
enum { CLASSES_MAX = 1 << 20 };

keel_status keel_record_scan_begin(keel_record_scan *s, int64_t rows)
{
    *s = (keel_record_scan){ .largest = -1 };
    s->splits = keel_calloc((size_t)rows + 1, sizeof *s->splits);
    return s->splits ? KEEL_OK : KEEL_ENOMEM;
}

void keel_record_scan_free(keel_record_scan *s)
{
    keel_free(s->splits);
    keel_free(s->text);
    *s = (keel_record_scan){ 0 };
}

keel_status keel_record_scan_row(keel_record_scan *s, const keel_record_field *f, int64_t n)
{
    s->whole = s->n_text;
    const bool open = f->shape.rank > 0 && f->shape.dim[0] == KEEL_DIM_OPEN;
    const int64_t each = f->kind == KEEL_RECORD_TEXT ? 1 : f->count;
    if (f->shaped && !open) { /* it must not differ */
        s->rows++;
        return keel_record_check(f, n, n);
    }
    const int64_t steps = each ? n / each : 0;
    if (steps * each != n)
        return keel_fail(KEEL_EDATA, "'%s' has %lld values, which is not a multiple of %lld",
                         f->part, (long long)n, (long long)each);
    s->splits[s->rows + 1] = s->splits[s->rows] + steps;
    s->rows++;
    s->differ = s->differ || steps != s->splits[1];
    return KEEL_OK;
}

keel_status keel_record_put_off(keel_record_fields *f, int64_t row)
{
    if (f->n_bad == f->bad_room) {
        const int64_t room = f->bad_room ? 2 * f->bad_room : 16;
        int64_t *bad = keel_grow(f->bad, (size_t)room, sizeof *bad);
        if (!bad) return KEEL_ENOMEM;
        f->bad = bad;
        f->bad_room = room;
    }
    f->bad[f->n_bad++] = row;
    return KEEL_OK;
}

static int by_row(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void keel_record_sort_bad(keel_record_fields *f)
{
    if (f->n_bad) qsort(f->bad, (size_t)f->n_bad, sizeof *f->bad, by_row);
}

bool keel_record_is_bad(const keel_record_fields *f, int64_t row)
{
    return f->n_bad && bsearch(&row, f->bad, (size_t)f->n_bad, sizeof row, by_row);
}

keel_status keel_record_scan_blank(keel_record_scan *s, const keel_record_field *f, int64_t next)
{
    enum { TEXTS = 16 };
    const int64_t steps = s->splits[1];
    if (s->rows == next) return KEEL_OK; /* this field of the row was right */
    s->n_text = s->whole;
    if (f->kind == KEEL_RECORD_TEXT && steps > TEXTS)
        return keel_fail(KEEL_EDATA, "rows of more than %d texts cannot stay blank", TEXTS);
    size_t at = 0;
    for (int64_t i = 0; f->kind == KEEL_RECORD_TEXT && i < steps; i++) {
        char *copy = keel_strdup(s->text + at); /* s->text moves when it grows */
        const size_t n = copy ? strlen(copy) : 0;
        const keel_status r = copy ? keel_record_scan_text(s, copy, n) : KEEL_ENOMEM;
        keel_free(copy);
        if (r < 0) return r;
        at += n + 1;
    }
    s->whole = s->n_text;
    s->splits[next] = s->splits[next - 1] + steps;
    s->rows = next;
    return KEEL_OK;
}

keel_status keel_record_scan_text(keel_record_scan *s, const void *text, size_t n)
{
    const char *c = text;
    if (n >= TEXTS_MAX - s->n_text)
        return keel_fail(KEEL_EDATA, "texts of more than 1 GiB, which are held in memory");
    for (size_t i = 0; i < n;) {
        const int step = keel_utf8_next(c + i, n - i, NULL);
        if (!step || !c[i])
            return keel_fail(KEEL_EFORMAT, "a text that is not UTF-8 or has a zero byte");
        i += (size_t)step;
    }
    if (s->n_text + n + 1 > s->room) {
        const size_t room = 2 * s->room + n + 4096;
        char *grown = keel_grow(s->text, room, 1);
        if (!grown) return KEEL_ENOMEM;
        s->text = grown;
        s->room = room;
    }
    if (n) memcpy(s->text + s->n_text, c, n);
    s->text[s->n_text + n] = 0;
    s->n_text += n + 1;
    return KEEL_OK;
}

void keel_record_scan_label(keel_record_scan *s, const void *value, keel_dtype dtype)
{
    double v = 0;
    keel_convert(&v, KEEL_FLOAT64, value, dtype, 1);
    if (!(v >= 0) || v != floor(v) || v >= CLASSES_MAX)
        s->largest = INT64_MAX;
    else if ((int64_t)v > s->largest)
        s->largest = (int64_t)v;
}

/* Make the texts a tensor, and if they are labels numbers. */
static keel_status keep_texts(const keel_record_scan *s, keel_record_field *f,
                              const keel_dataset_options *o, keel_classes *classes,
                              const char *what)
{
    const int64_t n = s->splits[s->rows];
    const keel_shape all = KEEL_SHAPE(n);
    keel_classes these = { 0 };
    keel_string *list = keel_calloc((size_t)n + 1, sizeof *list);
    if (!list) return KEEL_ENOMEM;
    const char *at = s->text;
    for (int64_t i = 0; i < n; i++, at += strlen(at) + 1)
        list[i] = (keel_string){ at, (int64_t)strlen(at) };
    keel_status r = keel_strings_create(&f->kept, &all, list);
    keel_free(list);
    if (r < 0 || f->field.role != KEEL_ROLE_TARGET) return r;
    if (s->differ || s->splits[1] != 1)
        return keel_fail(KEEL_EUNSUP, "%s: '%s': text labels must be one per row", what, f->part);
    const keel_dataset_options own = keel_labels_options(o, o->n_target ? f->choice : -1);
    if ((r = keel_labels_from_array(&f->kept, &these, &own, what)) < 0)
        return keel_fail_within(r, "labels '%s'", f->part);
    if (these.n && classes->n) {
        keel_classes_free(&these);
        return keel_fail(KEEL_EUNSUP,
                         "%s: class names as labels in more than one target; use numbers", what);
    }
    if (these.n) *classes = these;
    return KEEL_OK;
}

static keel_status end(keel_record_scan *s, keel_record_field *f, const keel_dataset_options *o,
                       keel_classes *classes, const char *what)
{
    const bool text = f->kind == KEEL_RECORD_TEXT;
    if (f->unknown) {
        if (s->largest == INT64_MAX)
            return keel_fail(KEEL_EDATA,
                             "%s: '%s' has labels that are not classes; classes are whole numbers "
                             "from 0",
                             what, f->part);
        f->classes = s->largest + 1;
    }
    if (text) {
        KEEL_TRY(keep_texts(s, f, o, classes, what));
        f->field.dtype = f->kept.dtype;
        f->shape = s->splits[1] == 1 && !s->differ ? (keel_shape){ 0 } : KEEL_SHAPE(s->splits[1]);
        if (f->kept.shape.rank > 1) f->shape = KEEL_SHAPE(f->kept.shape.dim[1]); /* one-hot */
    }
    if (s->differ && f->shape.rank == 0) f->shape.rank = 1;
    if (s->differ) f->shape.dim[0] = KEEL_DIM_OPEN;
    if (text) {
        const keel_shape least = keel_shape_closed(&f->shape, 1);
        f->field.shape = f->shape;
        f->count = keel_shape_count(&least);
    }
    if (f->shape.rank > 0 && f->shape.dim[0] == KEEL_DIM_OPEN) {
        f->splits = s->splits;
        s->splits = NULL;
    }
    return KEEL_OK;
}

keel_status keel_record_scan_end(keel_record_scan *s, keel_record_field *f,
                                 const keel_dataset_options *o, keel_classes *classes,
                                 const char *what)
{
    const keel_status r = end(s, f, o, classes, what);
    keel_record_scan_free(s);
    return r;
}
