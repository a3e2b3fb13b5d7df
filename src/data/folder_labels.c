/* Labels that are given, one for each file, in place of folders; see folders.h. */
#include "base/memory.h"
#include "base/plural.h"
#include "data/folders.h"
#include "io/file.h"
#include "io/text_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_MOST = 1 << 20, LABEL_BYTES = 64, FILE_LEAST = 4096 };

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
}

keel_status keel_labels_parse(int32_t **out, int64_t *count, int64_t most, const char *text,
                              size_t n_bytes, const char *what)
{
    keel_status s = KEEL_OK;
    int64_t n = 0, room = 0, line = 1;
    int32_t *label = NULL;
    for (const char *at = text + keel_text_mark(text, n_bytes), *end = text + n_bytes;
         s >= 0 && at < end;) {
        line += *at == '\n';
        if (is_space(*at)) {
            at++;
            continue;
        }
        int64_t v = 0;
        const char *begin = at;
        while (at < end && *at >= '0' && *at <= '9' && v <= LABEL_MOST) v = 10 * v + (*at++ - '0');
        if (at == begin || v > LABEL_MOST || (at < end && !is_space(*at))) {
            s = keel_fail(KEEL_EFORMAT, "%s:%lld: labels are whole numbers from 0 to %d", what,
                          (long long)line, LABEL_MOST);
        } else if (n == most) {
            s = keel_fail(KEEL_EDATA, "%s: more labels than the %lld files", what, (long long)most);
        } else if (n == room) {
            room = room ? 2 * room : 256;
            int32_t *more = keel_grow(label, (size_t)room, sizeof *label);
            if (more)
                label = more;
            else
                s = KEEL_ENOMEM;
        }
        if (s >= 0) label[n++] = (int32_t)v;
    }
    if (s < 0) {
        keel_free(label);
        return s;
    }
    *out = label;
    *count = n;
    return KEEL_OK;
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* The class names are those of the model, else, if labels are 0 to n - 1, these numbers. */
static keel_status name_classes(keel_folder *f, int64_t n, bool dense,
                                const keel_dataset_options *o)
{
    char number[16];
    const int64_t named = o->class_name_count ? o->class_name_count : dense ? n : 0;
    if (!named) return KEEL_OK;
    if (!(f->class_names = keel_calloc((size_t)named, sizeof *f->class_names))) return KEEL_ENOMEM;
    for (; f->n_classes < named; f->n_classes++) {
        snprintf(number, sizeof number, "%d", (int)f->n_classes);
        char *name = keel_strdup(o->class_name_count ? o->class_names[f->n_classes] : number);
        if (!name) return KEEL_ENOMEM;
        f->class_names[f->n_classes] = name;
    }
    return KEEL_OK;
}

/* The different labels: their number, and if they are 0 to n - 1. */
static keel_status count_classes(const int32_t *label, int64_t count, int64_t *n, bool *dense)
{
    int32_t *sorted = keel_calloc((size_t)count + 1, sizeof *sorted);
    if (!sorted) return KEEL_ENOMEM;
    memcpy(sorted, label, (size_t)count * sizeof *sorted);
    qsort(sorted, (size_t)count, sizeof *sorted, by_number);
    *n = 0;
    for (int64_t i = 0; i < count; i++) *n += !i || sorted[i] != sorted[i - 1];
    *dense = count && sorted[0] == 0 && sorted[count - 1] == *n - 1;
    keel_free(sorted);
    return KEEL_OK;
}

static keel_status take(keel_folder *f, const int32_t *label, int64_t count,
                        const keel_dataset_options *o, const char *path)
{
    int64_t n = 0;
    bool dense = false;
    const int64_t most = o->class_count ? o->class_count : o->class_name_count;
    if (count != f->count)
        return keel_fail(KEEL_EDATA, "%s: %lld label%s for %lld file%s", path, (long long)count,
                         keel_s(count), (long long)f->count, keel_s(f->count));
    for (int64_t i = 0; i < count; i++) {
        if (label[i] < 0 || label[i] > LABEL_MOST || (most && label[i] >= most))
            return keel_fail(KEEL_EDATA, "%s: label %d of file %lld is not from 0 to %lld", path,
                             (int)label[i], (long long)i,
                             (long long)(most ? most - 1 : LABEL_MOST));
        f->at[i].label = label[i];
    }
    KEEL_TRY(count_classes(label, count, &n, &dense));
    if (f->label_mode == KEEL_LABEL_BINARY && !(n == 2 && dense))
        return keel_fail(KEEL_EDATA, "%s: binary labels must be 0 and 1, but there are %lld", path,
                         (long long)n);
    if (f->label_mode == KEEL_LABEL_CATEGORICAL && !o->class_count && !dense &&
        !o->class_name_count)
        return keel_fail(KEEL_EDATA,
                         "%s: one-hot labels must be 0 to %lld, one for each of the %lld classes",
                         path, (long long)n - 1, (long long)n);
    return name_classes(f, n, dense, o);
}

keel_status keel_folder_take_labels(keel_folder *f, const char *path, const keel_dataset_options *o)
{
    void *text = NULL;
    size_t n_bytes = 0;
    int32_t *label = NULL;
    int64_t count = 0;
    if (!o->labels_path) return take(f, o->labels, o->label_count, o, path);
    const size_t most = FILE_LEAST + LABEL_BYTES * (size_t)f->count;
    KEEL_TRY(keel_file_read(o->labels_path, most, &text, &n_bytes));
    keel_status s = keel_labels_parse(&label, &count, f->count, text, n_bytes, o->labels_path);
    if (s >= 0) {
        s = take(f, label, count, o, path);
        if (s == KEEL_EDATA) s = keel_fail_within(s, "%s", o->labels_path);
    }
    keel_free(label);
    keel_free(text);
    return s;
}
