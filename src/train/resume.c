/* See resume.h. */
#include "train/resume.h"
#include "base/clock.h"
#include "train/callbacks/backup_and_restore.h"
#include <string.h>

/* Whether the checkpoint that was found is of this run, and is not beyond its end. */
static keel_status check(keel_resume *r, const keel_fit_options *o)
{
    char note[160];
    const keel_checkpoint *c = &r->from;
    KEEL_TRY(
        keel_identity_check(json_object_get(c->head, "identity"), r->identity, note, sizeof note));
    if (c->epoch > o->epochs || (c->epoch == o->epochs && c->step > 0))
        return keel_fail(KEEL_EARG,
                         "its run has done %lld epochs, and this one is to do %lld: give as many "
                         "at least, or to begin anew another folder",
                         (long long)c->epoch, (long long)o->epochs);
    if (*note) keel_saver_tell(r->saver, "the checkpoint is used, but %s", note);
    return KEEL_OK;
}

static void tell(const keel_resume *r, const keel_fit_options *o)
{
    const keel_checkpoint *c = &r->from;
    if (c->finished || c->epoch >= o->epochs)
        keel_saver_tell(r->saver,
                        "the checkpoint is of a training that is complete, after %lld "
                        "epochs: there is nothing left to do",
                        (long long)c->epoch);
    else if (c->step == 0)
        keel_saver_tell(r->saver, "goes on from the checkpoint after epoch %lld",
                        (long long)c->epoch);
    else
        keel_saver_tell(r->saver, "goes on from the checkpoint after step %lld of epoch %lld",
                        (long long)c->step, (long long)c->epoch + 1);
}

/* The caller's options, or those of a BackupAndRestore. */
static keel_status choose(keel_resume *r, keel_checkpoint_options *out, const keel_fit_options *o)
{
    const char *folder;
    int64_t steps;
    bool deletes;
    const keel_checkpoint_options *given = o->checkpoint;
    *out = (keel_checkpoint_options){ KEEL_CHECKPOINT_OPTIONS };
    if (given && (given->size == 0 || given->size > sizeof *out))
        return keel_fail(KEEL_EARG,
                         "checkpoint options: initialize them with KEEL_CHECKPOINT_OPTIONS");
    if (given) memcpy(out, given, given->size);
    if (!keel_backup_find(o, &folder, &steps, &deletes)) return KEEL_OK;
    if (out->folder)
        return keel_fail(KEEL_EARG, "a folder for checkpoints and a BackupAndRestore: give one of "
                                    "them");
    r->deletes = deletes;
    out->folder = folder;
    out->every_steps = steps;
    out->resume = true;
    return KEEL_OK;
}

keel_status keel_resume_open(keel_resume *r, keel_model *m, const keel_strategy *s,
                             const keel_dataset *data, const keel_fit_options *o)
{
    keel_checkpoint_options chosen;
    KEEL_TRY(choose(r, &chosen, o));
    if (!chosen.folder) return KEEL_OK;
    KEEL_TRY(keel_saver_open(&r->saver, &chosen));
    r->epochs = o->epochs;
    r->interrupted = chosen.interrupted;
    r->context = chosen.context;
    KEEL_TRY(keel_identity_make(&r->identity, m, s, data, o));
    keel_status st = keel_saver_newest(r->saver, &r->from);
    if (st != KEEL_OK) return st < 0 ? st : KEEL_OK;
    r->found = true;
    st = check(r, o);
    if (st >= 0) st = keel_checkpoint_give_model(&r->from, m);
    if (st < 0) return keel_fail_within(st, "the checkpoint in %s", chosen.folder);
    tell(r, o);
    return KEEL_OK;
}

keel_status keel_resume_begin(keel_resume *r, const keel_standing *st)
{
    if (!r->saver) return KEEL_OK;
    KEEL_TRY(keel_saver_begin(r->saver, st->trainer->model));
    if (!r->found) return KEEL_OK;
    const keel_status s = keel_checkpoint_give_rest(&r->from, st);
    return s < 0 ? keel_fail_within(s, "the checkpoint") : KEEL_OK;
}

/* "12,800 rows"; -1: "rows". */
static const char *rows_text(char out[48], int64_t n)
{
    char digits[24];
    int at = 0;
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; n >= 0 && i < length; i++) {
        if (i && (length - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    strcpy(out + at, n < 0 ? "rows" : n == 1 ? " row" : " rows");
    return out;
}

keel_status keel_resume_seek(keel_resume *r, keel_feed *f)
{
    char text[48];
    const keel_checkpoint *c = &r->from;
    const uint32_t epoch = (uint32_t)c->epoch;
    const int64_t rows = keel_feed_rows_before(f, epoch, c->rows);
    const double start = keel_seconds();
    if (rows)
        keel_saver_tell(r->saver, "reads %s again, since a stream cannot begin at a later row",
                        rows_text(text, rows));
    const keel_status s = keel_feed_seek(f, epoch, c->step);
    if (rows && s >= 0)
        keel_saver_tell(r->saver, "goes on after %s, which were read again in %.1f s",
                        rows_text(text, keel_feed_rows_again(f)), keel_seconds() - start);
    return s;
}

void keel_resume_step(keel_resume *r, const keel_standing *st)
{
    if (r->saver && !r->over) keel_saver_step(r->saver, st);
}

void keel_resume_epoch(keel_resume *r, const keel_standing *st)
{
    if (r->saver && !r->over) keel_saver_epoch(r->saver, st);
}

static bool from_outside(const keel_resume *r)
{
    return r->interrupted && r->interrupted(r->context);
}

void keel_resume_stop(keel_resume *r, const keel_standing *st)
{
    if (!r->saver || r->over || !from_outside(r)) return;
    keel_saver_end(r->saver, st);
    r->over = true;
}

void keel_resume_end(keel_resume *r, keel_standing *st, bool stopped)
{
    if (!r->saver || r->over || !st->identity) return;
    st->finished = r->found && r->from.finished;
    if (stopped && !from_outside(r)) st->finished = true;
    keel_saver_end(r->saver, st);
    if (r->deletes && (st->finished || st->epoch >= r->epochs)) keel_saver_remove(r->saver);
    r->over = true;
}

void keel_resume_close(keel_resume *r)
{
    keel_saver_close(r->saver);
    keel_checkpoint_free(&r->from);
    json_decref(r->identity);
    *r = (keel_resume){ 0 };
}
