/* See identity.h. */
#include "train/identity.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/shared_ids.h"
#include "base/text.h"
#include "data/stage.h"
#include "model/parts.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "train/callbacks/watcher.h"
#include "train/strategy.h"
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, BYTES = 16 << 20, HEX = 17, VALUE = 152, MOST_WORDS = 5 };

/* ---- hashes ---------------------------------------------------------------------------------- */

static json_t *hex(uint64_t sum)
{
    char text[HEX];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)sum);
    return json_string(text);
}

static keel_status hash_config(uint64_t *sum, const keel_model *m)
{
    json_t *config = NULL;
    KEEL_TRY(keel_model_to_config(m, &config));
    json_t *own = json_deep_copy(config); /* the model may keep what is in it */
    json_decref(config);
    char *text =
        keel_shared_ids_number(own) ? json_dumps(own, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(own);
    if (!text) return keel_fail(KEEL_ENOMEM, "out of memory");
    keel_fingerprint_add(sum, text, strlen(text));
    free(text);
    for (int i = 0; i < m->n_weight; i++) /* which no file of a model has */
        if (m->weight[i].info.undecayed) keel_fingerprint_add(sum, &i, sizeof i);
    return KEEL_OK;
}

static uint64_t hash_weights(const keel_model *m)
{
    const keel_model_compiled *c = &m->compiled;
    uint64_t sum = 0;
    for (int i = 0; i < m->n_weight; i++)
        keel_fingerprint_add(&sum, m->weight[i].data,
                             (size_t)keel_shape_count(&m->weight[i].info.spec.shape) *
                                 keel_dtype_size(m->dtype));
    for (int i = 0; c->iterations > 0 && i < c->n_state; i++)
        if (c->state[i].data)
            keel_fingerprint_add(&sum, c->state[i].data,
                                 (size_t)keel_shape_count(&c->state[i].shape) *
                                     keel_dtype_size(c->state[i].dtype));
    keel_fingerprint_add(&sum, &c->iterations, sizeof c->iterations);
    return sum;
}

/* ---- data ------------------------------------------------------------------------------------ */

static bool is_open(const keel_data_field *f)
{
    for (int d = 0; d < f->shape.rank; d++)
        if (f->shape.dim[d] == KEEL_DIM_OPEN) return true;
    return false;
}

typedef struct reading {
    keel_row row;
    keel_dtype want[KEEL_FIELDS_MAX];
    int64_t count[KEEL_FIELDS_MAX];
    int64_t row_bytes;
    keel_scratch scratch;
} reading;

static keel_status begin_reading(reading *r, const keel_data_spec *spec)
{
    r->row.want = r->want;
    r->row.count = r->count;
    for (int i = 0; i < spec->n_field; i++) {
        const keel_data_field *f = &spec->field[i];
        r->want[i] = f->dtype;
        if (is_open(f)) continue;
        r->count[i] = keel_shape_count(&f->shape);
        r->row_bytes += r->count[i] * (int64_t)keel_dtype_size(f->dtype);
        r->row.at[i] = keel_aligned_calloc((size_t)r->count[i], keel_dtype_size(f->dtype));
        if (!r->row.at[i]) return KEEL_ENOMEM;
    }
    return KEEL_OK;
}

static void hash_row(uint64_t *sum, const reading *r, const keel_dataset *d, int64_t index)
{
    const keel_data_spec *spec = &d->origin->spec;
    for (int i = 0; i < spec->n_field; i++) {
        const keel_string *text = r->row.at[i];
        if (!r->row.at[i]) {
            const keel_source *source = d->origin->source;
            const int64_t n = source->length ? source->length(d->origin->state, i, index) : 0;
            keel_fingerprint_add(sum, &n, sizeof n);
        } else if (r->want[i] == KEEL_STRING) {
            for (int64_t k = 0; k < r->count[i]; k++)
                keel_fingerprint_add(sum, text[k].data, (size_t)text[k].n_bytes);
        } else {
            keel_fingerprint_add(sum, r->row.at[i],
                                 (size_t)r->count[i] * keel_dtype_size(r->want[i]));
        }
    }
}

/* The contents of rows all over the data; a row that cannot be read counts by its failure alone. */
static keel_status hash_rows(uint64_t *sum, const keel_dataset *d)
{
    const keel_source *source = d->origin->source;
    reading r = { 0 };
    if (!source->read || d->rows < 1) return KEEL_OK;
    const keel_status s = begin_reading(&r, &d->origin->spec);
    int64_t n = BYTES / (r.row_bytes + 1);
    n = n < 1 ? 1 : n > ROWS ? ROWS : n;
    if (n > d->rows) n = d->rows;
    for (int64_t i = 0; s >= 0 && i < n; i++) {
        const int64_t row = n > 1 ? i * (d->rows - 1) / (n - 1) : 0; /* n is small */
        const int64_t index = keel_dataset_index(d, row);
        const keel_status got = source->read(d->origin->state, index, &r.row, &r.scratch);
        if (got >= 0)
            hash_row(sum, &r, d, index);
        else
            keel_fingerprint_add(sum, &got, sizeof got);
    }
    for (int i = 0; i < d->origin->spec.n_field; i++) keel_free(r.row.at[i]);
    keel_scratch_free(&r.scratch);
    return s;
}

/* "rows 60000: x uint8 (28, 28), y uint8 (); 0123456789abcdef" */
static keel_status describe(json_t *to, const char *key, const keel_dataset *d)
{
    keel_text t = { 0 };
    char shape[96];
    uint64_t sum = 0;
    if (!d) return json_object_set_new(to, key, json_null()) ? KEEL_ENOMEM : KEEL_OK;
    const keel_data_spec *spec = &d->origin->spec;
    const keel_applied *s = d->origin->applied;
    const bool counted = !s || !s->revived; /* with or without a file of rows */
    if (counted && !(s && s->drawn_once)) KEEL_TRY(hash_rows(&sum, d));
    if (counted && d->rows >= 0)
        keel_text_add(&t, "%lld %s of ", (long long)d->rows, spec->batched ? "batches" : "rows");
    for (int i = 0; i < spec->n_field; i++) {
        keel_shape_text(shape, &spec->field[i].shape);
        keel_text_add(&t, "%s%.80s %s %s", i ? ", " : "", spec->field[i].path,
                      keel_dtype_name(spec->field[i].dtype), shape);
    }
    keel_text stages = { 0 };
    keel_stage_describe(d, &stages);
    if (stages.length) keel_fingerprint_add(&sum, stages.data, stages.length);
    t.failed |= stages.failed;
    keel_text_free(&stages);
    for (int64_t i = 0; i < spec->n_classes; i++)
        keel_fingerprint_add(&sum, spec->class_names[i], strlen(spec->class_names[i]));
    keel_text_add(&t, "; contents %016llx", (unsigned long long)sum);
    const bool bad = t.failed || json_object_set_new(to, key, json_string(t.data));
    keel_text_free(&t);
    return bad ? keel_fail(KEEL_ENOMEM, "out of memory") : KEEL_OK;
}

/* ---- options --------------------------------------------------------------------------------- */

static json_t *class_weights(const keel_fit_options *o)
{
    json_t *list = json_array();
    for (int64_t i = 0; o->class_weight && i < o->class_weight_count; i++)
        json_array_append_new(list, json_real(o->class_weight[i]));
    return list;
}

static json_t *buckets(const keel_fit_options *o)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < o->bucket_count; i++)
        json_array_append_new(list, json_integer(o->bucket[i]));
    return list;
}

/* The name of a callback, and the arguments that decide what is trained. */
static json_t *one_callback(const keel_callback *c)
{
    const keel_watching *w = keel_watching_of(c);
    json_t *name = json_string(c->name ? c->name : "");
    if (!w || !w->watcher->steers) return name;
    json_t *args = keel_fields_json(w->args.type, w->args.args);
    json_object_del(args, "verbose");
    return json_pack("[oo]", name, args);
}

static json_t *callbacks(const keel_fit_options *o)
{
    json_t *list = json_array();
    for (int i = 0; o->callbacks && o->callbacks[i]; i++)
        if (json_array_append_new(list, one_callback(o->callbacks[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static bool set_options(json_t *to, const keel_fit_options *o)
{
    const struct {
        const char *key;
        json_t *value;
    } all[] = {
        { "batch_size", json_integer(o->batch_size ? o->batch_size : 32) },
        { "seed", json_integer((json_int_t)o->seed) },
        { "no_shuffle", json_boolean(o->no_shuffle) },
        { "end", json_integer(o->end) },
        { "initial_epoch", json_integer(o->initial_epoch) },
        { "steps_per_epoch", json_integer(o->steps_per_epoch) },
        { "class_weight", class_weights(o) },
        { "bucket", buckets(o) },
        { "callbacks", callbacks(o) },
        { "reset_states", json_boolean(o->reset_states) },
        { "validation_batch_size", json_integer(o->validation_batch_size) },
        { "validation_steps", json_integer(o->validation_steps) },
        { "validation_freq", json_integer(o->validation_freq) },
        { "float32", json_integer(o->float32) },
        { "unfused", json_boolean(o->unfused) },
        { "reference_kernels", json_boolean(o->reference_kernels) },
        { "without_kernels", json_string(o->without_kernels ? o->without_kernels : "") },
    };
    bool bad = false;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        bad |= json_object_set_new(to, all[i].key, all[i].value) != 0;
    return !bad;
}

keel_status keel_identity_make(json_t **out, const keel_model *m, const keel_strategy *s,
                               const keel_dataset *data, const keel_fit_options *o)
{
    uint64_t config = 0;
    keel_status st = hash_config(&config, m);
    json_t *j = st < 0 ? NULL : json_object();
    if (st < 0) return st;
    const int shards = keel_strategy_shards(s);
    bool good = j && !json_object_set_new(j, "model", hex(config)) &&
                !json_object_set_new(j, "weights", hex(hash_weights(m))) &&
                !json_object_set_new(j, "shards", json_integer(shards)) &&
                !json_object_set_new(j, "cores", json_integer(keel_strategy_cores(s))) &&
                !json_object_set_new(j, "computing", json_string(keel_computes_with())) &&
                !json_object_set_new(j, "compress", json_string(keel_compress_name(s->compress))) &&
                !json_object_set_new(j, "shard_optimizer", json_boolean(s->shard_optimizer)) &&
                set_options(j, o);
    st = good ? describe(j, "data", data) : keel_fail(KEEL_ENOMEM, "out of memory");
    if (st >= 0) st = describe(j, "validation", o->validation);
    if (st < 0) {
        json_decref(j);
        return st;
    }
    *out = j;
    return KEEL_OK;
}

/* ---- comparing ------------------------------------------------------------------------------- */

/* What differs in words, where the values say nothing to a reader. */
static const struct {
    const char *key, *text;
} SAID[] = {
    { "model", "it is of another model, or of one that was compiled in another way" },
    { "weights", "its run began with other weights: give the file that it began with" },
    { "callbacks", "its run had other callbacks, or the same with other arguments" },
};

/* The words of options that files have as numbers. */
static const struct {
    const char *key, *word[MOST_WORDS];
} WORDS[] = {
    { "end", { "keep", "drop", "carry", "wrap", "error" } },
    { "float32", { "exact", "fma", "fast" } },
};
_Static_assert(KEEL_KEEP == 0 && KEEL_DROP == 1 && KEEL_CARRY == 2 && KEEL_WRAP == 3 &&
                   KEEL_REFUSE == 4 && KEEL_FLOAT32_EXACT == 0 && KEEL_FLOAT32_FMA == 1 &&
                   KEEL_FLOAT32_FAST == 2,
               "the order of WORDS");

/* A value as a reader knows it, in `out`. */
static const char *in_words(char out[VALUE], const char *key, const json_t *value)
{
    const json_int_t at = json_is_integer(value) ? json_integer_value(value) : -1;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (!strcmp(WORDS[i].key, key) && at >= 0 && at < MOST_WORDS && WORDS[i].word[at])
            return WORDS[i].word[at];
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    snprintf(out, VALUE, "%s", text ? text : "nothing");
    free(text);
    return out;
}

static keel_status differs(const char *key, const json_t *was, const json_t *is)
{
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++)
        if (!strcmp(SAID[i].key, key))
            return keel_fail(KEEL_EARG, "%s; to begin anew, give another folder", SAID[i].text);
    char a[VALUE], b[VALUE];
    const bool had = !json_is_null(was);
    return keel_fail(KEEL_EARG,
                     "its run had %s%s%s%s, and this one has %s; give the same, or to begin anew "
                     "another folder",
                     had ? "" : "no ", key, had ? " " : "", had ? in_words(a, key, was) : "",
                     json_is_null(is) ? "none" : in_words(b, key, is));
}

/* The first thing that decides the results and differs; NULL: nothing. *note is set as by
 * keel_identity_check. together: of processes that share steps. How gradients travel must be the
 * same for them, but not for a run that goes on, maybe with one process: that only rounds. */
static const char *first_difference(const json_t *was, const json_t *is, bool together, char *note,
                                    size_t size)
{
    const char *key;
    const json_t *value;
    note[0] = 0;
    json_object_foreach((json_t *)is, key, value)
    {
        const json_t *old = json_object_get(was, key);
        const bool travels = !strcmp(key, "compress");
        const bool rounds = !strcmp(key, "cores") || !strcmp(key, "computing");
        if (old && json_equal(old, value)) continue;
        if (!strcmp(key, "shard_optimizer") && !together) continue; /* no bit depends on it */
        if (!old && travels && !strcmp(json_string_value(value), "none"))
            continue; /* an older file */
        if (!rounds && (together || !travels)) return key;
        if (!strcmp(key, "cores") && json_integer_value(json_object_get(is, "shards"))) continue;
        snprintf(note, size,
                 travels ? "its gradients travelled in another type, so the results agree to the "
                           "rounding of that"
                         : "it was made on another number of cores or another processor, so the "
                           "results agree to rounding");
    }
    return NULL;
}

keel_status keel_identity_check(const json_t *was, const json_t *is, char *note, size_t size)
{
    const char *key = first_difference(was, is, false, note, size);
    return key ? differs(key, json_object_get(was, key), json_object_get(is, key)) : KEEL_OK;
}

keel_status keel_identity_same(const json_t *first, const json_t *own)
{
    char note[160];
    const char *key = first_difference(first, own, true, note, sizeof note);
    if (!key) return KEEL_OK;
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++)
        if (!strcmp(SAID[i].key, key))
            return keel_fail(KEEL_EARG, "its %s differ from those of process 0",
                             strcmp(key, "model") ? key : "layers, or how they were compiled,");
    char a[VALUE], b[VALUE];
    return keel_fail(KEEL_EARG, "its %s is %s, that of process 0 is %s", key,
                     in_words(a, key, json_object_get(own, key)),
                     in_words(b, key, json_object_get(first, key)));
}
