/* keel_reader: going through a dataset outside of training. */
#include "base/memory.h"
#include "data/iter.h"
#include "data/pool.h"
#include "data/stage.h"
#include "data/watchdog.h"
#include "keel/pipeline.h"
#include <string.h>

struct keel_reader {
    keel_run run;
    keel_account account;
    keel_work *work;
    keel_iter *it;
    keel_element *given;
    keel_watchdog *watchdog;
    uint64_t pass;
    bool ended; /* the next call begins the next pass */
    keel_tensor field[KEEL_FIELDS_MAX];
    char note[512];
};

static keel_status check(keel_reader_options *out, const keel_reader_options *o)
{
    *out = KEEL_READER_OPTIONS;
    if (!o) return KEEL_OK;
    if (o->size < sizeof(size_t) || o->size > sizeof *out)
        return keel_fail(KEEL_EARG, "reader: size must be sizeof(keel_reader_options)");
    memcpy(out, o, o->size);
    if (out->index < 0 || out->memory < 0 || out->threads < -1 || out->threads > 256)
        return keel_fail(KEEL_EARG, "reader: index and memory must not be negative, and threads "
                                    "must be -1 to 256");
    return KEEL_OK;
}

/* The end of a wait. What hangs is the caller's own thread, so it is late where it is over. */
static keel_status in_time(keel_reader *r, keel_status s)
{
    keel_watchdog_end(r->watchdog);
    return keel_watchdog_is_over(r->watchdog) ? keel_watchdog_fail(r->watchdog) : s;
}

keel_status keel_reader_create(keel_reader **out, const keel_dataset *d,
                               const keel_reader_options *options)
{
    keel_reader_options o;
    if (!out || !d) return keel_fail(KEEL_EARG, "reader: out and d must not be NULL");
    KEEL_TRY(check(&o, options));
    keel_reader *r = keel_calloc(1, sizeof *r);
    if (!r) return KEEL_ENOMEM;
    r->run.seed = o.seed;
    r->account.limit = o.memory;
    r->account.soft = true;
    r->run.account = &r->account;
    r->pass = o.pass;
    const int threads = o.threads < 0 ? 0 : o.threads ? o.threads : keel_reading_threads();
    keel_status s = keel_work_create(&r->work, d, threads + 1);
    r->run.work = r->work;
    if (s >= 0) s = keel_run_begin(&r->run, d, threads);
    if (s >= 0) s = keel_iter_create(&r->it, d, &r->run, 0);
    if (s >= 0) s = keel_watchdog_create(&r->watchdog, o.watch, d, "", NULL, NULL);
    if (s >= 0) s = keel_run_watch(&r->run, r->watchdog);
    keel_watchdog_begin(r->watchdog);
    if (s >= 0) s = keel_iter_begin(r->it, r->pass);
    if (s >= 0) s = keel_iter_seek(r->it, o.index);
    s = in_time(r, s);
    if (s != KEEL_OK) {
        keel_reader_destroy(r);
        return s;
    }
    *out = r;
    return KEEL_OK;
}

keel_status keel_reader_next(keel_reader *r, const keel_tensor **field)
{
    if (!r || !field) return keel_fail(KEEL_EARG, "reader: r and field must not be NULL");
    keel_element_release(r->given);
    r->given = NULL;
    keel_watchdog_begin(r->watchdog);
    keel_status s = r->ended ? keel_iter_begin(r->it, ++r->pass) : KEEL_OK;
    if (s >= 0) {
        r->ended = false;
        s = keel_run_next(r->it, &r->given);
    }
    s = in_time(r, s);
    r->ended = s == KEEL_END;
    if (s != KEEL_OK) return s;
    for (int i = 0; i < r->given->n_field; i++)
        r->field[i] = (keel_tensor){ r->it->spec->field[i].dtype, r->given->field[i].shape,
                                     r->given->field[i].data };
    *field = r->field;
    return KEEL_OK;
}

void keel_reader_pass(keel_reader *r)
{
    if (r) keel_iter_pass(r->it);
}

const char *keel_reader_note(keel_reader *r)
{
    keel_stage_note(r->it->dataset, r->note, sizeof r->note);
    return *r->note ? r->note : NULL;
}

void keel_reader_destroy(keel_reader *r)
{
    if (!r) return;
    keel_watchdog_destroy(r->watchdog);
    keel_element_release(r->given);
    keel_iter_destroy(r->it);
    keel_run_end(&r->run);
    keel_account_drop(&r->account);
    keel_work_destroy(r->work);
    keel_free(r);
}
