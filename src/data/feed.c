/* The part of the feed that both engines share. feed.h has the contract; feed_rows.c and
 * feed_stream.c fill the slots. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "data/feed.h"
#include "base/memory.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include <assert.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { SLOTS_DEFAULT = 3, SLOTS_MAX = 64, THREADS_MAX = 64, INLINE_BYTES = 1 << 20 };

static keel_status check_options(const keel_feed *f)
{
    const keel_feed_options *o = &f->o;
    const char *name = keel_dataset_name(f->dataset);
    if (!keel_dtype_is_real(o->real))
        return keel_fail(KEEL_EARG, "feed: batches are float32 or float64");
    if (o->batch_size < 0 || o->steps_per_epoch < 0 || o->epochs < 0 || o->first_epoch < 0)
        return keel_fail(KEEL_EARG, "%s: batch size, steps and epochs must not be negative", name);
    if (o->first_epoch > INT32_MAX || (o->epochs && o->first_epoch >= o->epochs))
        return keel_fail(KEEL_EARG, "%s: first epoch %lld, but there are %lld epochs", name,
                         (long long)o->first_epoch + 1, (long long)o->epochs);
    if ((unsigned)o->end > KEEL_REFUSE)
        return keel_fail(KEEL_EARG, "%s: unknown policy for the end of the data", name);
    if (o->slots < 0 || o->slots > SLOTS_MAX || o->threads < -1 || o->threads > THREADS_MAX)
        return keel_fail(KEEL_EARG, "%s: at most %d slots and %d threads", name, SLOTS_MAX,
                         THREADS_MAX);
    if (!o->batch_size && (f->source->read || f->spec->by_row))
        return keel_fail(KEEL_EARG, "%s: give a batch size", name);
    if (o->batch_size && f->spec->shaped && !f->spec->by_row)
        return keel_fail(KEEL_EARG,
                         "%s: each of its batches has its own shape and is one step: "
                         "leave the batch size out",
                         name);
    if (o->class_weight && keel_spec_first(f->spec, KEEL_ROLE_TARGET) < 0)
        return keel_fail(KEEL_EARG, "%s: class weights need labels, but there is no y", name);
    for (int64_t i = 0; o->class_weight && i < o->class_weight_count; i++)
        if (!(o->class_weight[i] >= 0) || isinf(o->class_weight[i]))
            return keel_fail(KEEL_EARG,
                             "class weight of class %lld is %g; it must be finite and >= 0",
                             (long long)i, o->class_weight[i]);
    return KEEL_OK;
}

/* Choose the type of a field in a batch. */
static keel_status choose_type(const keel_feed *f, int i, keel_dtype *want)
{
    const keel_data_field *field = &f->spec->field[i];
    const bool is_weight = field->role == KEEL_ROLE_WEIGHT;
    *want = is_weight || keel_dtype_is_real(field->dtype) ? f->o.real : field->dtype;
    if (f->o.want) *want = f->o.want[i];
    if ((unsigned)*want >= KEEL_DTYPE_COUNT)
        return keel_fail(KEEL_EARG, "%s: unknown dtype for field '%s'",
                         keel_dataset_name(f->dataset), field->path);
    if ((field->dtype == KEEL_STRING) != (*want == KEEL_STRING) && !(f->o.unwanted >> i & 1))
        return keel_fail(KEEL_EUNSUP, "%s: field '%s' has %s, but %s is expected",
                         keel_dataset_name(f->dataset), field->path, keel_dtype_name(field->dtype),
                         keel_dtype_name(*want));
    if (is_weight && !keel_dtype_is_real(*want))
        return keel_fail(KEEL_EARG, "%s: weights ('%s') must be float32 or float64, not %s",
                         keel_dataset_name(f->dataset), field->path, keel_dtype_name(*want));
    return KEEL_OK;
}

/* Class weights are looked up by the labels of the only target. */
static keel_status find_labels(keel_feed *f)
{
    const char *name = keel_dataset_name(f->dataset);
    f->label = -1;
    if (!f->o.class_weight) return KEEL_OK;
    for (int i = 0; i < f->n_field; i++) {
        if (f->field[i].role != KEEL_ROLE_TARGET || !f->bytes[i]) continue;
        if (f->label >= 0)
            return keel_fail(KEEL_EARG,
                             "%s: class weights need a single target, but there are '%s' and '%s'; "
                             "give weights for each row",
                             name, f->field[f->label].path, f->field[i].path);
        f->label = i;
        if (f->field[i].dtype == KEEL_STRING)
            return keel_fail(KEEL_EARG,
                             "%s: class weights need numbers as labels, but '%s' has "
                             "texts",
                             name, f->field[i].path);
    }
    if (f->count[f->weight] > 1)
        return keel_fail(KEEL_EARG,
                         "%s: class weights cannot be multiplied into '%s', which has %lld "
                         "numbers for each row",
                         name, f->field[f->weight].path, (long long)f->count[f->weight]);
    if (f->label < 0 || !f->bytes[f->weight])
        return keel_fail(KEEL_EARG,
                         "%s: class weights need the labels and weights, but they are not read",
                         name);
    return KEEL_OK;
}

/* Append the fields that are computed from others. */
static keel_status add_made(keel_feed *f)
{
    const int n = f->o.n_made;
    if (!n) return KEEL_OK;
    if (n > KEEL_FIELDS_MAX - f->n_field)
        return keel_fail(KEEL_EUNSUP,
                         "%s: %d fields and %d computed from them; a row has at "
                         "most %d",
                         keel_dataset_name(f->dataset), f->n_field, n, KEEL_FIELDS_MAX);
    f->made = keel_calloc((size_t)n, sizeof *f->made);
    if (!f->made) return KEEL_ENOMEM;
    for (int i = 0; i < n; i++) {
        const keel_feed_made *made = &f->o.made[i];
        for (int k = 0; k < made->n_of; k++)
            assert(made->of[k] >= 0 && made->of[k] < f->n_field &&
                   (made->of[k] >= f->spec->n_field || !(f->o.unwanted >> made->of[k] & 1)));
        f->made[i] = *made;
        f->want[f->n_field] = made->dtype;
        f->field[f->n_field++] = (keel_data_field){ .path = f->field[made->of[0]].path,
                                                    .dtype = made->dtype,
                                                    .shape = made->shape,
                                                    .role = KEEL_ROLE_INPUT };
    }
    f->n_made = n;
    f->may_fail = true; /* a text may be missing in the vocabulary */
    return KEEL_OK;
}

keel_status keel_feed_make(const keel_feed *f, const keel_slot *s, int64_t from, int64_t to,
                           keel_scratch *scratch, int64_t *failed)
{
    for (int64_t row = from; row < to; row++)
        for (int i = 0; i < f->n_made; i++) {
            const int at = f->spec->n_field + i, n_of = f->made[i].n_of;
            keel_tensor in[KEEL_HOST_INS_MAX];
            for (int k = 0; k < n_of; k++) {
                const int of = f->made[i].of[k];
                /* a field of the dataset may be in the user's array */
                const char *given = of < f->spec->n_field ? s->batch.field[of] : s->at[of];
                in[k] = (keel_tensor){ f->want[of], s->field[of].shape,
                                       (char *)given + (size_t)row * s->bytes[of] };
            }
            const keel_tensor out = { f->want[at], s->field[at].shape,
                                      s->at[at] + (size_t)row * s->bytes[at] };
            const keel_status r = f->made[i].op(f->made[i].args, in, n_of, &out, scratch);
            *failed = row;
            if (r < 0 && r != KEEL_ENOMEM) keel_fail_within(r, "field '%s'", f->field[at].path);
            if (r < 0) return r;
        }
    *failed = to;
    return KEEL_OK;
}

/* The fields of a batch: those of the dataset, those computed from them, and weights if requested.
 */
static keel_status choose_fields(keel_feed *f)
{
    static const keel_data_field weights = { .path = "sample_weight", .role = KEEL_ROLE_WEIGHT };
    f->n_field = f->spec->n_field;
    memcpy(f->field, f->spec->field, (size_t)f->n_field * sizeof *f->field);
    for (int i = 0; i < f->n_field; i++) {
        KEEL_TRY(choose_type(f, i, &f->want[i]));
        if (!(f->o.unwanted >> i & 1) &&
            !keel_convert_always_fits(f->want[i], f->spec->field[i].dtype))
            f->may_fail = true;
    }
    KEEL_TRY(add_made(f));
    f->weight = keel_spec_first(f->spec, KEEL_ROLE_WEIGHT);
    if (f->weight < 0 && (f->o.class_weight || f->o.wants_weight)) {
        if (f->n_field == KEEL_FIELDS_MAX)
            return keel_fail(KEEL_EARG, "%s: %d fields leave no room for weights",
                             keel_dataset_name(f->dataset), KEEL_FIELDS_MAX);
        f->weight = f->n_field;
        f->want[f->n_field] = f->o.real;
        f->field[f->n_field++] = weights;
    }
    for (int i = 0; i < f->n_field; i++) {
        f->field[i].dtype = f->want[i];
        if (i < f->spec->n_field && keel_shape_is_open(&f->spec->field[i].shape)) {
            f->field[i].shape = keel_shape_closed(&f->field[i].shape, 1);
            if (!(f->o.unwanted >> i & 1)) {
                f->open |= UINT64_C(1) << i;
                if (f->source->length) KEEL_TRY(keel_feed_find_longest(f, i));
            }
        }
        if (i >= f->spec->n_field && i < f->spec->n_field + f->n_made)
            f->field[i].shape = keel_feed_made_shape(f, i, f->field);
        f->count[i] = keel_shape_count(&f->field[i].shape);
        if (i < f->spec->n_field && f->o.unwanted >> i & 1) continue;
        int64_t bytes;
        if (!keel_mul_i64(f->count[i], (int64_t)keel_dtype_size(f->want[i]), &bytes) ||
            __builtin_add_overflow(f->row_bytes, bytes, &f->row_bytes))
            return keel_fail(KEEL_EARG, "%s: a row is larger than the address space",
                             keel_dataset_name(f->dataset));
        f->bytes[i] = (size_t)bytes;
    }
    return find_labels(f);
}

/* Refuse, before step 1, a stream that cannot last for the steps requested. */
static keel_status check_stream(const keel_feed *f)
{
    const keel_feed_options *o = &f->o;
    const char *name = keel_dataset_name(f->dataset);
    const int64_t epochs = o->epochs - o->first_epoch; /* to be served, if o->epochs is known */
    if (f->spec->endless && !o->steps_per_epoch)
        return keel_fail(KEEL_EDATA, "%s never ends: give steps_per_epoch", name);
    if (!f->spec->one_shot || f->spec->endless) return KEEL_OK;
    if (!o->steps_per_epoch && epochs > 1)
        return keel_fail(
            KEEL_EDATA,
            "%s has no reset, so it serves one epoch and not %lld: give it a reset, or "
            "give steps_per_epoch",
            name, (long long)epochs);
    if (!o->steps_per_epoch && o->end == KEEL_WRAP && o->batch_size &&
        (f->spec->rows < 0 || f->spec->rows % o->batch_size))
        return keel_fail(
            KEEL_EDATA, "%s has no reset, so its last batch cannot be filled from the start", name);
    int64_t steps, rows;
    if (f->planned && epochs > 1 &&
        (!keel_mul_i64(epochs - 1, o->steps_per_epoch, &steps) ||
         !keel_mul_i64(steps, o->batch_size, &rows) || rows >= f->plan.n))
        return keel_fail(KEEL_EDATA,
                         "%s has no reset and %lld rows: too few for %lld epochs of %lld "
                         "steps of %lld rows; give it a reset",
                         name, (long long)f->plan.n, (long long)epochs,
                         (long long)o->steps_per_epoch, (long long)o->batch_size);
    return KEEL_OK;
}

static int allowed_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* The number of reading threads: none if copying a batch from memory is faster than waking a
 * thread, one if only a few texts are looked up. */
static int choose_threads(const keel_feed *f)
{
    const double batch_bytes = (double)f->max_rows * (double)f->row_bytes;
    if (f->o.threads < 0) return 0;
    if (f->source->next) return 1;
    if (f->o.threads) return f->o.threads;
    if (f->source->in_memory) return f->n_made || batch_bytes > INLINE_BYTES ? 1 : 0;
    const int n = allowed_cpus();
    return n < 1 ? 1 : n > 16 ? 16 : n;
}

static keel_status create_slots(keel_feed *f)
{
    f->slots = keel_calloc((size_t)f->n_slots, sizeof *f->slots);
    if (!f->slots) return KEEL_ENOMEM;
    for (int i = 0; i < f->n_slots; i++) {
        KEEL_TRY(keel_feed_own_lengths(f, &f->slots[i]));
        if (f->source->length && f->open &&
            !(f->slots[i].row = keel_calloc((size_t)f->max_rows, sizeof(int64_t))))
            return KEEL_ENOMEM;
        for (int k = 0; k < f->n_field; k++) {
            size_t n;
            if (!keel_mul(f->bytes[k], (size_t)f->max_rows, &n))
                return keel_fail(KEEL_EARG,
                                 "%s: a batch of %lld rows is larger than the address space",
                                 keel_dataset_name(f->dataset), (long long)f->max_rows);
            if (n && !(f->slots[i].at[k] = keel_aligned_calloc(1, n))) return KEEL_ENOMEM;
            if (f->slots[i].own) f->slots[i].own->room[k] = n;
        }
    }
    return KEEL_OK;
}

keel_status keel_feed_create(keel_feed **out, const keel_dataset *dataset,
                             const keel_feed_options *options)
{
    keel_status s;
    keel_feed *f = keel_calloc(1, sizeof *f);
    if (!f) return KEEL_ENOMEM;
    f->dataset = dataset;
    f->spec = &dataset->origin->spec;
    f->source = dataset->origin->source;
    f->o = *options;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work, NULL);
    pthread_cond_init(&f->ready, NULL);
    if ((s = check_options(f)) < 0) goto out;

    if ((s = choose_fields(f)) < 0) goto out;
    f->max_rows = f->o.batch_size ? f->o.batch_size : f->spec->max_rows;
    f->planned = dataset->rows >= 0 && f->o.batch_size;
    f->epoch = (uint32_t)f->o.first_epoch;
    if (f->planned) {
        const char *name = keel_dataset_name(dataset);
        if ((s = keel_feed_plan_init(&f->plan, dataset->rows, &f->o, name)) < 0) goto out;
        if (!keel_feed_plan_can_count(&f->plan, f->epoch)) {
            s = keel_fail(KEEL_EARG, "epoch %u is more than can be counted", f->epoch);
            goto out;
        }
        int64_t counts[2];
        keel_feed_plan_counts(&f->plan, counts);
        if (f->source->read) f->max_rows = counts[0];
        keel_feed_plan_note(&f->plan, name, f->note, sizeof f->note);
    }
    if (f->source->next && (s = check_stream(f)) < 0) goto out;
    f->n_slots = f->o.slots ? f->o.slots : SLOTS_DEFAULT;
    if (f->n_slots < 2) f->n_slots = 2;
    if ((s = create_slots(f)) < 0) goto out;
    if (f->source->next && (s = keel_feed_stream_create(f)) < 0) goto out;
    if (f->spec->shaped && (s = keel_feed_staged_create(f)) < 0) goto out;

    const int n = choose_threads(f);
    f->chunk = f->source->in_memory ? 1 + (64 << 10) / (f->row_bytes + 1) : 1;
    s = KEEL_ENOMEM;
    if (n && !(f->threads = keel_calloc((size_t)n, sizeof *f->threads))) goto out;
    pthread_mutex_lock(&f->lock); /* held until all are started, since threads read n_threads */
    while (f->n_threads < n &&
           !pthread_create(&f->threads[f->n_threads], NULL,
                           f->source->next ? keel_feed_stream_worker : keel_feed_rows_worker, f))
        f->n_threads++;
    pthread_mutex_unlock(&f->lock);
    if (n && !f->n_threads) { /* fewer threads than requested are accepted, none are not */
        s = keel_fail(KEEL_ENOMEM, "feed: no thread could be started");
        goto out;
    }
    *out = f;
    f = NULL;
    s = KEEL_OK;
out:
    keel_feed_destroy(f);
    return s;
}

void keel_feed_destroy(keel_feed *f)
{
    if (!f) return;
    pthread_mutex_lock(&f->lock);
    f->quit = true;
    pthread_cond_broadcast(&f->work);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->n_threads; i++) pthread_join(f->threads[i], NULL);
    keel_feed_stream_destroy(f);
    keel_feed_staged_destroy(f);
    for (int i = 0; f->slots && i < f->n_slots; i++) {
        for (int k = 0; k < f->n_field; k++) keel_free(f->slots[i].at[k]);
        keel_free(f->slots[i].own);
        keel_free(f->slots[i].row);
    }
    keel_free(f->slots);
    keel_free(f->made);
    keel_free(f->threads);
    keel_scratch_free(&f->scratch);
    pthread_cond_destroy(&f->ready);
    pthread_cond_destroy(&f->work);
    pthread_mutex_destroy(&f->lock);
    keel_free(f);
}

int keel_feed_field_count(const keel_feed *f)
{
    return f->n_field;
}

const keel_data_field *keel_feed_field(const keel_feed *f, int i)
{
    return i >= 0 && i < f->n_field ? &f->field[i] : NULL;
}

const void *keel_batch_field(const keel_batch *b, keel_data_role role, int nth)
{
    for (int i = 0; i < b->n_field; i++)
        if (b->field[i] && b->spec[i].role == role && nth-- == 0) return b->field[i];
    return NULL;
}

int64_t keel_feed_steps(const keel_feed *f)
{
    if (f->planned) return keel_feed_plan_steps(&f->plan, f->epoch);
    const int64_t asked = f->o.steps_per_epoch, has = f->spec->yields;
    if (f->o.batch_size || has < 0 || f->o.end == KEEL_WRAP) /* the data may end before `asked` */
        return asked ? asked : has >= 0 && !f->o.batch_size ? has : -1;
    return asked && asked < has ? asked : has;
}

int64_t keel_feed_rows(const keel_feed *f)
{
    if (f->planned) return keel_feed_plan_rows(&f->plan, f->epoch);
    return f->o.steps_per_epoch ? -1 : f->dataset->rows;
}

int64_t keel_feed_max_rows(const keel_feed *f)
{
    return f->max_rows;
}

int keel_feed_row_counts(const keel_feed *f, int64_t *counts, int max, bool *complete)
{
    int64_t all[2] = { f->max_rows };
    int n = 1;
    bool known = true;
    if (f->planned) {
        n = keel_feed_plan_counts(&f->plan, all);
    } else if (!f->o.batch_size && f->dataset->rows >= 0) { /* full batches and a short one */
        const int64_t tail = f->dataset->rows % f->max_rows;
        if (f->dataset->rows < f->max_rows) n = 0;
        if (tail) all[n++] = tail;
    } else {
        known = f->o.batch_size && (f->spec->endless || f->o.end == KEEL_DROP ||
                                    f->o.end == KEEL_WRAP || f->o.end == KEEL_REFUSE);
    }
    if (complete) *complete = known && n <= max;
    if (n > max) n = max;
    for (int i = 0; i < n; i++) counts[i] = all[i];
    return n;
}

const char *keel_feed_note(const keel_feed *f)
{
    return f->note[0] ? f->note : NULL;
}

int64_t keel_feed_bytes(const keel_feed *f)
{
    int64_t n = 0;
    if (!f->staged) return f->n_slots * f->max_rows * f->row_bytes;
    for (int i = 0; i < f->n_slots; i++)
        for (int k = 0; k < f->n_field; k++)
            n += (int64_t)__atomic_load_n(&f->slots[i].own->room[k], __ATOMIC_RELAXED);
    return n;
}

double keel_feed_wait_seconds(const keel_feed *f)
{
    return f->waited;
}

void keel_feed_flush(keel_feed *f)
{
    f->paused = true;
    while (f->busy) pthread_cond_wait(&f->ready, &f->lock);
    for (int i = 0; i < f->n_slots; i++)
        if (f->slots[i].state != KEEL_SLOT_HELD) f->slots[i].state = KEEL_SLOT_FREE;
    f->next_fill = f->next_out;
    f->paused = false;
}

void keel_feed_wait(keel_feed *f, const keel_slot *s)
{
    if (s->state == KEEL_SLOT_READY) return;
    const double begin = keel_seconds();
    while (s->state != KEEL_SLOT_READY) pthread_cond_wait(&f->ready, &f->lock);
    f->waited += keel_seconds() - begin;
}

keel_status keel_feed_begin_epoch(keel_feed *f, uint32_t epoch)
{
    keel_status s;
    if (f->planned && !keel_feed_plan_can_count(&f->plan, epoch))
        return keel_fail(KEEL_EARG, "epoch %u is more than can be counted", epoch);
    pthread_mutex_lock(&f->lock);
    s = f->source->next ? keel_feed_stream_begin(f, epoch) : keel_feed_rows_begin(f, epoch);
    if (s >= 0) {
        f->begun = true;
        f->ended = false;
        f->epoch = epoch;
        f->step = 0;
    }
    pthread_cond_broadcast(&f->work);
    pthread_mutex_unlock(&f->lock);
    return s;
}

/* A stream cannot be addressed by row: its rows are read and discarded. */
static keel_status skip_steps(keel_feed *f, uint32_t epoch, int64_t step)
{
    const char *name = keel_dataset_name(f->dataset);
    if (epoch && (f->o.steps_per_epoch || f->o.end == KEEL_CARRY))
        return keel_fail(KEEL_EUNSUP, "%s: a stream whose epochs begin inside a pass cannot resume",
                         name);
    KEEL_TRY(keel_feed_begin_epoch(f, epoch));
    while (f->step < step) {
        keel_batch b;
        const keel_status s = keel_feed_next(f, &b);
        if (s < 0) return s;
        if (s == KEEL_END)
            return keel_fail(KEEL_EARG, "%s: epoch %u has no step %lld", name, epoch + 1,
                             (long long)step + 1);
        keel_feed_release(f, &b);
    }
    return KEEL_OK;
}

keel_status keel_feed_seek(keel_feed *f, uint32_t epoch, int64_t step)
{
    if (f->source->next) return skip_steps(f, epoch, step);
    KEEL_TRY(keel_feed_begin_epoch(f, epoch));
    const int64_t steps = keel_feed_plan_steps(&f->plan, epoch);
    if (step < 0 || step > steps)
        return keel_fail(KEEL_EARG, "%s: epoch %u has %lld steps, so there is none after step %lld",
                         keel_dataset_name(f->dataset), epoch + 1, (long long)steps,
                         (long long)step);
    pthread_mutex_lock(&f->lock);
    keel_feed_flush(f);
    f->fill_step = f->step = step;
    pthread_cond_broadcast(&f->work);
    pthread_mutex_unlock(&f->lock);
    return KEEL_OK;
}

keel_status keel_feed_next(keel_feed *f, keel_batch *out)
{
    keel_status s = KEEL_END;
    keel_slot *slot = NULL;
    if (!f->begun) return keel_fail(KEEL_EARG, "feed: begin an epoch first");
    pthread_mutex_lock(&f->lock);
    if (f->ended) goto out;
    slot = &f->slots[f->next_out % (uint64_t)f->n_slots];
    if (slot->state == KEEL_SLOT_HELD) {
        s = keel_fail(KEEL_EARG, "feed: all %d batches are held; release one first", f->n_slots);
        goto out;
    }
    s = f->source->next ? keel_feed_stream_next(f, &slot) : keel_feed_rows_next(f, &slot);
    if (s == KEEL_END) f->ended = true;
    if (s != KEEL_OK) goto out;
    slot->state = KEEL_SLOT_HELD;
    slot->batch.slot = (int)(slot - f->slots);
    f->next_out++;
    f->step++;
    *out = slot->batch;
out:
    pthread_mutex_unlock(&f->lock);
    return s;
}

void keel_feed_release(keel_feed *f, const keel_batch *b)
{
    pthread_mutex_lock(&f->lock);
    assert(f->slots[b->slot].state == KEEL_SLOT_HELD);
    f->slots[b->slot].state = KEEL_SLOT_FREE;
    if (f->n_threads) pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
}

void keel_feed_retry(keel_feed *f, const keel_batch *b)
{
    pthread_mutex_lock(&f->lock);
    assert((f->next_out - 1) % (uint64_t)f->n_slots == (uint64_t)b->slot);
    assert(f->slots[b->slot].state == KEEL_SLOT_HELD);
    f->slots[b->slot].state = KEEL_SLOT_READY;
    f->next_out--;
    f->step--;
    f->ended = false;
    pthread_mutex_unlock(&f->lock);
}

static double value_at(const void *data, keel_dtype type, int64_t i)
{
    double v = 0;
    keel_convert(&v, KEEL_FLOAT64, (const char *)data + (size_t)i * keel_dtype_size(type), type, 1);
    return v;
}

/* The label of row i: the target if it is one number, else the index of its largest element. */
static int64_t label_of(const keel_feed *f, const keel_slot *s, int64_t i)
{
    const int64_t n = s->count[f->label];
    const keel_dtype type = f->want[f->label];
    const void *y = (const char *)s->batch.field[f->label] + (size_t)i * s->bytes[f->label];
    int64_t best = 0;
    double most = value_at(y, type, 0);
    if (n == 1) return most >= 0 && most < 9e15 ? (int64_t)(most + 0.5) : -1;
    for (int64_t k = 1; k < n; k++) {
        const double v = value_at(y, type, k);
        if (v > most) {
            best = k;
            most = v;
        }
    }
    return best;
}

void keel_feed_finish(const keel_feed *f, keel_slot *s)
{
    keel_batch *b = &s->batch;
    const int at = f->weight;
    b->weight_sum = (double)b->rows;
    if (at < 0 || !f->bytes[at]) return;
    const bool wide = f->want[at] == KEEL_FLOAT64, given = at < f->spec->n_field;
    const void *from = given ? b->field[at] : NULL; /* may point into the user's array */
    double *w64 = (double *)(void *)s->at[at], sum = 0;
    float *w32 = (float *)(void *)s->at[at];
    const int64_t n = s->count[at]; /* elements of a row */
    for (int64_t i = 0; i < b->rows * n; i++) {
        double w = !from ? 1 : wide ? ((const double *)from)[i] : (double)((const float *)from)[i];
        if (f->o.class_weight) {
            const int64_t label = label_of(f, s, i);
            if (label >= 0 && label < f->o.class_weight_count) w *= f->o.class_weight[label];
        }
        if (wide)
            w64[i] = w;
        else
            w32[i] = (float)w;
        sum += wide ? w : (double)(float)w;
    }
    b->field[at] = s->at[at];
    b->weight_sum = sum / (double)n;
}
