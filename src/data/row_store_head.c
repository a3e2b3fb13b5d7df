/* Which pipeline a file of rows was made by; see row_store.h. */
#include "base/hash.h"
#include "base/memory.h"
#include "data/iter.h"
#include "data/row_store.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint64_t mix(uint64_t sum, const void *data, size_t n)
{
    const uint64_t pair[2] = { sum, keel_fingerprint(data, n) };
    return keel_fingerprint(pair, sizeof pair);
}

/* Which rows of a source a dataset has: a part of it, or all but some; 0: all. */
static uint64_t part_of(const keel_dataset *d)
{
    const keel_data_origin *o = d->origin;
    const keel_split_order *order = d->order;
    uint64_t part[4] = { (uint64_t)d->first, order != NULL };
    if (order) part[2] = keel_fingerprint(order->at, (size_t)o->spec.rows * sizeof *order->at);
    if (o->n_gone) part[3] = keel_fingerprint(o->gone, (size_t)o->n_gone * sizeof *o->gone);
    return part[0] || part[1] || part[3] ? keel_fingerprint(part, sizeof part) : 0;
}

/* Files that rows name are opened on the way: their names, sizes and times tell which. */
static void add_named_files(keel_text *t, const keel_dataset *d)
{
    const keel_dtype want = KEEL_STRING;
    const int64_t count = 1;
    keel_string name = { 0 };
    keel_scratch scratch = { 0 };
    uint64_t sum = 0;
    const keel_row row = { .at = { &name }, .want = &want, .count = &count };
    if (strcmp(d->origin->source->name, "list_files") != 0) return;
    for (int64_t i = 0; i < d->rows; i++) {
        struct stat st;
        if (d->origin->source->read(d->origin->state, keel_dataset_index(d, i), &row, &scratch) < 0)
            continue;
        char *path = keel_strndup(name.data, (size_t)name.n_bytes);
        sum = mix(sum, name.data, (size_t)name.n_bytes);
        if (!path) t->failed = true;
        if (path && stat(path, &st) == 0) {
            const int64_t facts[2] = { (int64_t)st.st_size, (int64_t)st.st_mtime };
            sum = mix(sum, facts, sizeof facts);
        }
        keel_free(path);
    }
    keel_scratch_free(&scratch);
    keel_text_add(t, " (names, sizes and times %016llx)", (unsigned long long)sum);
}

/* What a file of rows that were drawn at random does not show of its source: a photo that was
 * replaced, or is resized in another way. So three rows of the source are known by their bytes. */
static void add_rows(keel_text *t, const keel_dataset *d)
{
    const int64_t row[] = { 0, d->rows / 2, d->rows - 1 };
    keel_scratch scratch[2] = { { { 0 } } };
    uint64_t sum = 0;
    if (!d->origin->source->read || d->rows < 1) return;
    for (int i = 0; i < 3; i++) {
        keel_element *e = NULL;
        uint64_t dims[KEEL_ROW_DIMS] = { 0 };
        const void *data = NULL;
        size_t n = 0;
        keel_status s =
            keel_element_read(&e, d, (keel_position){ .index = row[i] }, NULL, &scratch[0]);
        if (s >= 0) s = keel_row_store_encode(e, &d->origin->spec, &scratch[1], &data, &n, dims);
        t->failed |= s == KEEL_ENOMEM;
        if (s >= 0) sum = mix(mix(sum, data, n), dims, sizeof dims);
        keel_element_release(e);
    }
    for (int i = 0; i < 2; i++) keel_scratch_free(&scratch[i]);
    keel_text_add(t, " (contents %016llx)", (unsigned long long)sum);
}

/* The sources from left to right: how many rows each has and which, and size and time of its file.
 */
static void add_sources(keel_text *t, const keel_dataset *d, bool drawn)
{
    const keel_applied *s = d->origin->applied;
    struct stat st;
    for (int i = 0; s && i < s->n_parent; i++) add_sources(t, s->parent[i], drawn);
    if (s && part_of(d)) /* of what a stage makes */
        keel_text_add(t, " (part %016llx)", (unsigned long long)part_of(d));
    if (s) return;
    keel_text_add(t, "%s%s", t->length ? "; " : "", d->origin->source->name);
    if (d->rows >= 0) keel_text_add(t, " of %lld rows", (long long)d->rows);
    if (part_of(d)) keel_text_add(t, " (part %016llx)", (unsigned long long)part_of(d));
    add_named_files(t, d);
    if (drawn) add_rows(t, d);
    if (stat(keel_dataset_name(d), &st) == 0 && S_ISREG(st.st_mode))
        keel_text_add(t, " in %lld bytes of time %lld", (long long)st.st_size,
                      (long long)st.st_mtime);
}

static void add_fields(keel_text *t, const keel_data_spec *spec)
{
    static const char *const roles[] = { "input", "target", "weight" };
    char shape[96];
    uint64_t classes = 0;
    keel_text_add(t, "%s", spec->batched ? "batches of " : "");
    for (int i = 0; i < spec->n_field; i++) {
        const keel_data_field *f = &spec->field[i];
        keel_shape_text(shape, &f->shape);
        keel_text_add(t, "%s%s %s %s %s %s", i ? ", " : "", roles[f->role], f->path,
                      f->target ? f->target : "", keel_dtype_name(f->dtype), shape);
    }
    for (int64_t i = 0; spec->class_names && i < spec->n_classes; i++)
        classes = mix(classes, spec->class_names[i], strlen(spec->class_names[i]));
    if (classes) keel_text_add(t, ", classes %016llx", (unsigned long long)classes);
}

static const char *const keys[] = { "fields", "stages", "sources" };
enum { KEYS = 3 };

static json_t *head_of(const keel_dataset *parent, const keel_data_spec *spec)
{
    keel_text t[KEYS] = { { 0 } };
    json_t *all = json_object();
    bool good = all != NULL;
    add_fields(&t[0], spec);
    keel_stage_describe(parent, &t[1]);
    add_sources(&t[2], parent, keel_stage_draws(parent));
    for (int i = 0; i < KEYS; i++) {
        good = good && !t[i].failed &&
               !json_object_set_new(all, keys[i], json_string(t[i].data ? t[i].data : ""));
        keel_text_free(&t[i]);
    }
    if (good) return all;
    json_decref(all);
    keel_fail(KEEL_ENOMEM, "out of memory");
    return NULL;
}

char *keel_row_store_head(const keel_dataset *parent, const keel_data_spec *spec)
{
    json_t *all = head_of(parent, spec);
    char *text = all ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(all);
    if (!text) keel_fail(KEEL_ENOMEM, "out of memory");
    return text;
}

keel_status keel_row_store_check(const keel_row_file *f, const keel_dataset *parent,
                                 const keel_data_spec *spec)
{
    size_t n;
    const char *text = keel_row_file_head(f, &n);
    json_t *want = head_of(parent, spec);
    if (!want) return KEEL_ENOMEM;
    json_t *have = json_loadb(text, n, 0, NULL);
    keel_status s = KEEL_OK;
    for (int i = 0; s >= 0 && i < KEYS; i++) {
        const char *there = json_string_value(json_object_get(have, keys[i]));
        const char *here = json_string_value(json_object_get(want, keys[i]));
        if (!there || !here)
            s = keel_fail(KEEL_EFORMAT, "%s: its head is damaged", f->path);
        else if (strcmp(there, here) != 0)
            s = keel_fail(KEEL_EDATA,
                          "%s was made by another pipeline: its %s were %.200s, and here they are "
                          "%.200s; remove it, or give another name",
                          f->path, keys[i], *there ? there : "none", *here ? here : "none");
    }
    if (s >= 0 && f->n_dims != keel_row_store_dims(spec) && f->count)
        s = keel_fail(KEEL_EFORMAT, "%s: its index is damaged", f->path);
    json_decref(have);
    json_decref(want);
    return s;
}
