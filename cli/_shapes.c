/* See shapes.h. */
#include "shapes.h"
#include "page.h"
#include "tables.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int keel_padding_read(keel_padding *out, const keel_pad_options *o)
{
    static const char bucket[] = "bucket:";
    *out = (keel_padding){ 0 };
    if (!strcmp(o->pad, "longest")) return -1;
    if (strncmp(o->pad, bucket, strlen(bucket))) goto bad;
    for (const char *p = o->pad + strlen(bucket);; p++) {
        char *end;
        errno = 0;
        const long long n = strtoll(p, &end, 10);
        if (end == p || errno || n < 1 || out->n == KEEL_BUCKETS_MAX ||
            (out->n && n <= out->bucket[out->n - 1]))
            goto bad;
        out->bucket[out->n++] = n;
        p = end;
        if (!*p) return -1;
        if (*p != ',') goto bad;
    }
bad:
    return keel_complain(
        EXIT_USAGE,
        "--pad '%s': use longest, or ascending lengths, as bucket:8,16,32 (at most "
        "%d)",
        o->pad, KEEL_BUCKETS_MAX);
}

void keel_programs_print(const keel_program_counts *c, const keel_pad_options *o)
{
    const int64_t made = c->training + c->inference;
    if (c->training < 2 && c->inference < 2) return;
    printf("programs %lld compiled for batches of different shapes, %lld kept\n", (long long)made,
           (long long)c->kept);
    if (c->dropped)
        printf("warning  %lld programs were dropped to make room, and shapes that return are "
               "compiled again: "
               "%s, or keep more of them (--programs %lld)\n",
               (long long)c->dropped,
               strcmp(o->pad, "longest") ? "choose fewer buckets"
                                         : "use few lengths (--pad bucket:N,N,...)",
               (long long)(2 * o->programs < 30 ? 2 * o->programs : 30));
}

static int find_input(const keel_model *m, const char *name, size_t length)
{
    for (int i = 0; i < keel_model_input_count(m); i++) {
        const char *input = keel_model_input_name(m, i);
        if (strlen(input) == length && !strncmp(input, name, length)) return i;
    }
    return -1;
}

/* One word of --shape: "80" or "tokens=80". */
static bool read_one(keel_shape *shapes, const keel_model *m, const char *word, size_t length)
{
    char text[128];
    const char *equals = memchr(word, '=', length);
    const int i = equals ? find_input(m, word, (size_t)(equals - word)) : 0;
    const char *dims = equals ? equals + 1 : word;
    const size_t n = length - (size_t)(dims - word);
    if (i < 0 || n >= sizeof text || (!equals && keel_model_input_count(m) != 1)) return false;
    memcpy(text, dims, n);
    text[n] = 0;
    return keel_shape_parse(&shapes[i], text, 1, KEEL_RANK_MAX);
}

/* The field of the data with this name, or its only input if that feeds the only one of the model.
 * Others are left to the fit, which knows more of their names. */
static bool find_field(keel_data_field *out, const keel_dataset *d, const keel_model *m, int input)
{
    int n = 0;
    for (int i = 0; i < keel_dataset_field_count(d); i++) {
        keel_data_field f;
        if (keel_dataset_field(d, i, &f) < 0 || f.role != KEEL_ROLE_INPUT) continue;
        *out = f;
        if (!strcmp(f.path, keel_model_input_name(m, input))) return true;
        n++;
    }
    return n == 1 && keel_model_input_count(m) == 1;
}

/* True if rows of shape `data` can feed `own`, as in a fit: (28, 28) can feed (28, 28, 1). *taken:
 * own with the sizes of the data. */
static bool feeds(keel_shape *taken, const keel_shape *data, const keel_shape *own)
{
    *taken = *own;
    for (int i = 0; i < data->rank || i < own->rank; i++) {
        const int64_t has = i < data->rank ? data->dim[i] : 1;
        const int64_t wants = i < own->rank ? own->dim[i] : 1;
        if (has != wants && wants != KEEL_DIM_OPEN) return false;
        if (i < own->rank) taken->dim[i] = has;
    }
    return true;
}

static bool is_open(const keel_shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] == KEEL_DIM_OPEN) return true;
    return false;
}

static int complain_of_rows(const keel_dataset *d, const keel_data_field *f, const keel_model *m,
                            int input, const keel_shape *own)
{
    char have[96], want[96];
    keel_shape_text(have, sizeof have, &f->shape);
    keel_shape_text(want, sizeof want, own);
    const char *const name = keel_dataset_name(d);
    const char *const hint =
        keel_tables_is(name) ? "; --label names a column that is no input, --inputs those that are"
                             : "";
    if (keel_model_input_count(m) == 1)
        return keel_complain(EXIT_FAILED, "%s: rows have shape %s, but model '%s' takes %s%s", name,
                             have, keel_model_name(m), want, hint);
    return keel_complain(
        EXIT_FAILED, "%s: rows of '%s' have shape %s, but this input of model '%s' takes %s%s",
        name, keel_model_input_name(m, input), have, keel_model_name(m), want, hint);
}

static int shapes_of_data(keel_shape *shapes, const keel_dataset *d, const keel_model *m)
{
    for (int i = 0; i < keel_model_input_count(m); i++) {
        keel_shape own, taken;
        keel_data_field f;
        if (keel_model_input_shape(m, i, &own) < 0 || !find_field(&f, d, m, i)) continue;
        if (!feeds(&taken, &f.shape, &own)) return complain_of_rows(d, &f, m, i, &own);
        if (shapes[i].rank < 0 && !is_open(&taken)) shapes[i] = taken;
    }
    return -1;
}

int keel_shapes_read(keel_shape **out, const char *text, const keel_dataset *d, const keel_model *m)
{
    const int n = keel_model_input_count(m);
    keel_shape *shapes = calloc((size_t)n + 1, sizeof *shapes);
    if (!shapes) return keel_complain(EXIT_FAILED, "out of memory");
    for (int i = 0; i < n; i++) shapes[i].rank = -1;
    for (const char *p = text ? text : ""; *(p += strspn(p, " "));) {
        const size_t length = strcspn(p, " ");
        if (!read_one(shapes, m, p, length)) {
            free(shapes);
            return keel_complain(
                EXIT_USAGE,
                "--shape '%s': give the shape of a row, as 80, or of each input by its "
                "name, as '%s=80 other=40,48,3'",
                text, n ? keel_model_input_name(m, 0) : "input");
        }
        p += length;
    }
    const int code = d ? shapes_of_data(shapes, d, m) : -1;
    if (code >= 0) {
        free(shapes);
        return code;
    }
    for (int i = 0; i < n; i++) {
        keel_shape own;
        if (shapes[i].rank >= 0 || keel_model_input_shape(m, i, &own) < 0 || !is_open(&own))
            continue;
        free(shapes);
        return keel_complain(EXIT_USAGE,
                             "the model takes rows of any size as '%s': give a size, as "
                             "--shape %s=...",
                             keel_model_input_name(m, i), keel_model_input_name(m, i));
    }
    *out = shapes;
    return -1;
}
