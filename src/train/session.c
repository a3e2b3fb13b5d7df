/* See session.h. */
#include "train/session.h"
#include "train/shared_feed.h"
#include "train/together.h"
#include <string.h>

keel_status keel_session_options(keel_fit_options *out, const keel_fit_options *given)
{
    *out = (keel_fit_options){ KEEL_FIT_OPTIONS };
    if (given) {
        if (given->size == 0 || given->size > sizeof *out)
            return keel_fail(KEEL_EARG, "fit options: initialize them with KEEL_FIT_OPTIONS");
        memcpy(out, given, given->size);
    }
    if (out->epochs == 0) out->epochs = 1;
    if (out->validation_freq == 0) out->validation_freq = 1;
    const struct {
        const char *name;
        int64_t value;
    } counts[] = {
        { "batch_size", out->batch_size },
        { "epochs", out->epochs },
        { "initial_epoch", out->initial_epoch },
        { "steps_per_epoch", out->steps_per_epoch },
        { "validation_batch_size", out->validation_batch_size },
        { "validation_steps", out->validation_steps },
        { "validation_freq", out->validation_freq },
        { "class_weight_count", out->class_weight_count },
        { "threads", out->threads },
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value < 0 || counts[i].value > INT32_MAX)
            return keel_fail(KEEL_EARG, "%s is %lld; it must be 0 to %d", counts[i].name,
                             (long long)counts[i].value, INT32_MAX);
    if (out->initial_epoch >= out->epochs)
        return keel_fail(
            KEEL_EARG,
            "initial_epoch %lld leaves no epoch: epochs is %lld, and counts those before",
            (long long)out->initial_epoch, (long long)out->epochs);
    if ((unsigned)out->float32 > KEEL_FLOAT32_FAST)
        return keel_fail(KEEL_EARG, "float32 is %d; it must be KEEL_FLOAT32_EXACT, _FMA or _FAST",
                         (int)out->float32);
    if ((unsigned)out->end > KEEL_REFUSE)
        return keel_fail(KEEL_EARG, "unknown policy for the end of the data");
    if (out->programs && (out->programs < 2 || out->programs > KEEL_PROGRAMS_MAX))
        return keel_fail(KEEL_EARG, "programs is %lld; it must be 2 to %d, or 0 for %d",
                         (long long)out->programs, KEEL_PROGRAMS_MAX, KEEL_PROGRAMS_DEFAULT);
    if (out->bucket_count < 0 || (out->bucket_count && !out->bucket))
        return keel_fail(KEEL_EARG, "bucket_count is %lld, which does not match the buckets",
                         (long long)out->bucket_count);
    for (int64_t i = 0; i < out->bucket_count; i++)
        if (out->bucket[i] < 1 || (i && out->bucket[i] <= out->bucket[i - 1]))
            return keel_fail(KEEL_EARG, "bucket %lld: lengths must be above 0 and ascend",
                             (long long)out->bucket[i]);
    return KEEL_OK;
}

static keel_feed_options feed_options(const keel_dataset *d, const keel_fit_options *o,
                                      bool training, keel_dtype real, const keel_pairing *pairing)
{
    const bool rows =
        (d->origin->source->read || d->origin->spec.by_row) && !d->origin->spec.batched;
    keel_feed_options f = {
        .real = real,
        .want = pairing->want,
        .made = pairing->made,
        .n_made = pairing->n_made,
        .unwanted = pairing->unwanted,
        .batch_size = o->batch_size ? o->batch_size
                      : rows        ? 32
                                    : 0,
        .seed = o->seed,
        .threads = o->threads,
        .epochs = 1,
        .leaves_rows = true, /* the workers of a step read them */
        .bucket = o->bucket,
        .bucket_count = o->bucket_count,
        .watch = o->watch,
    };
    if (training) {
        f.shuffle = !o->no_shuffle;
        f.end = o->end;
        f.steps_per_epoch = o->steps_per_epoch;
        f.first_epoch = o->initial_epoch;
        f.epochs = o->epochs;
        f.class_weight = o->class_weight;
        f.class_weight_count = o->class_weight_count;
    } else {
        if (o->validation_batch_size) f.batch_size = o->validation_batch_size;
        f.steps_per_epoch = o->validation_steps;
        f.anew = true;
        f.untrained = true;
        if (o->validation) { /* once per epoch */
            f.first_epoch = o->initial_epoch / o->validation_freq;
            f.epochs = o->epochs / o->validation_freq;
            if (f.epochs <= f.first_epoch) f.epochs = f.first_epoch + 1;
        }
    }
    return f;
}

/* The rows of a step that this process has. */
static void own_rows(const void *lanes, int64_t rows, int64_t *first, int64_t *end)
{
    const keel_lanes *l = lanes;
    keel_lanes_rows(l, rows, l->process, first, end);
}

static void *take_of_host(void *device, size_t bytes)
{
    keel_device *d = device;
    void *at;
    return d->type->allocate_host(d, (int64_t)bytes, &at) >= 0 ? at : NULL;
}

static void give_to_host(void *device, void *at)
{
    keel_device *d = device;
    d->type->release_host(d, at);
}

keel_status keel_session_feed(keel_feed **out, const keel_dataset *d, const keel_fit_options *o,
                              bool training, keel_dtype real, const keel_pairing *pairing,
                              keel_account *account, const keel_strategy *s)
{
    keel_feed_options f = feed_options(d, o, training, real, pairing);
    keel_feed_share share;
    if (s->comm) {
        f.part = own_rows;
        f.part_context = &s->lanes;
        share = keel_share_feed(s);
        f.share = &share;
    }
    f.account = account;
    keel_device *device = keel_lanes_device(&s->lanes);
    if (device && device->type->allocate_host)
        f.memory = (keel_row_memory){ take_of_host, give_to_host, device };
    if (training) {
        f.on_decision = o->explain_input;
        f.context = o->explain_context;
    }
    return keel_feed_create(out, d, &f);
}

keel_status keel_session_least(int64_t *out, const keel_dataset *d, const keel_fit_options *o,
                               bool training, keel_dtype real, const keel_pairing *pairing)
{
    const keel_feed_options f = feed_options(d, o, training, real, pairing);
    return keel_feed_least(out, NULL, d, &f);
}

keel_status keel_session_work(keel_trainer_work *out, keel_feed *f, const keel_pairing *pairing,
                              int64_t epoch)
{
    keel_batch b;
    *out = (keel_trainer_work){ .pairing = pairing, .rows = keel_feed_max_rows(f) };
    if (!pairing->open) return KEEL_OK;
    KEEL_TRY(keel_feed_begin_epoch(f, (uint32_t)epoch));
    const keel_status s = keel_feed_next(f, &b);
    if (s < 0) return s;
    if (s == KEEL_END) return keel_fail(KEEL_EDATA, "the data has no batch");
    out->batch = b.spec;
    keel_feed_retry(f, &b);
    return KEEL_OK;
}

void keel_session_count(const keel_fit_options *o, const keel_trainer *t)
{
    if (!o->counts) return;
    *o->counts = (keel_program_counts){ 0 };
    if (t)
        *o->counts = (keel_program_counts){ .training = t->trained.made,
                                            .inference = t->tested.made,
                                            .kept = t->trained.n + t->tested.n,
                                            .dropped = t->trained.evicted + t->tested.evicted };
}

/* Whether targets without weights of their own have some. */
static bool has_weights(const keel_feed *f)
{
    for (int i = 0; i < keel_feed_field_count(f); i++)
        if (keel_feed_field(f, i)->role == KEEL_ROLE_WEIGHT && !keel_feed_field(f, i)->target)
            return true;
    return false;
}

keel_status keel_session_prepare(keel_scored *s, const keel_feed *f)
{
    enum { MOST = 64 };
    int64_t rows[MOST];
    for (int i = 0; i < s->program->graph->n_input; i++)
        s->program->absent[i] = s->field[i] == KEEL_ROW_WEIGHTS && !has_weights(f);
    const int n = keel_feed_row_counts(f, rows, MOST, NULL);
    return keel_trainer_prepare(s, rows, n < MOST ? n : MOST);
}

static keel_status test_step(keel_watch *r, keel_trainer *t, const keel_batch *b, keel_tally *tally)
{
    r->logs.count = 0;
    KEEL_TRY(keel_watch_tell(r, KEEL_ON_test_batch_begin));
    if (keel_live_take(&r->live)) keel_test_begin(t);
    KEEL_TRY(keel_trainer_meet(t, false, b));
    const keel_status s = keel_test_step(t, b, tally);
    return s == KEEL_OK ? keel_shown_take(&r->shown, t, false, b) : s;
}

static void tell_logs(keel_watch *r, const keel_trainer *t, const keel_tally *tally)
{
    keel_scored_names(&t->test, &r->logs);
    keel_tally_logs(&t->test, tally, &r->logs);
}

bool keel_session_goes_on(const keel_watch *r, keel_trainer *t)
{
    t->stops = r->stop_pass ? KEEL_STOPS_ITSELF : KEEL_STOPS_NOT;
    return !r->stop_pass || t->strategy->comm; /* the others are told in the next step */
}

keel_status keel_session_end_pass(keel_watch *r, keel_trainer *t, keel_status s)
{
    keel_stops stops = t->stops;
    if (!t->strategy->comm) return s < 0 ? s : KEEL_OK;
    if (!stops || s < 0) s = keel_together_begin(t->strategy, s, NULL, t->set, &stops);
    if (stops) r->stop_pass = true;
    return s < 0 ? s : KEEL_OK;
}

keel_status keel_session_test(keel_watch *r, keel_trainer *t, keel_feed *f, keel_tally *tally)
{
    keel_status s = KEEL_OK;
    keel_batch b;
    keel_moment *at = &r->at;
    const double start = keel_seconds(), waited = keel_feed_wait_seconds(f);
    at->training = false;
    at->step = at->rows = 0;
    at->seconds = at->waited = 0;
    at->steps = keel_feed_steps(f);
    at->all_rows = keel_feed_rows(f);
    r->logs.count = 0;
    r->stop_pass = false;
    KEEL_TRY(keel_watch_tell(r, KEEL_ON_test_begin));
    keel_live_take(&r->live);
    keel_test_begin(t);
    while (keel_session_goes_on(r, t) && (s = keel_gate_next(r->gate, f, &b)) == KEEL_OK) {
        keel_trainer_look_ahead(t, f);
        s = test_step(r, t, &b, tally);
        keel_feed_release(f, &b);
        if (s < 0) return s;
        if (s == KEEL_END) break; /* another process stops */
        at->step++;
        at->rows += b.rows;
        at->seconds = keel_seconds() - start;
        at->waited = keel_feed_wait_seconds(f) - waited;
        if (!keel_watch_hears(r, KEEL_ON_test_batch_end)) continue;
        tell_logs(r, t, tally);
        KEEL_TRY(keel_watch_tell_rows(r, KEEL_ON_test_batch_end));
    }
    KEEL_TRY(keel_session_end_pass(r, t, s));
    tell_logs(r, t, tally);
    return keel_watch_tell(r, KEEL_ON_test_end);
}
