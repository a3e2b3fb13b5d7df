/* See resume.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "train/resume.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/plural.h"
#include "io/file.h"
#include "train/callbacks/backup_and_restore.h"
#include "train/sharded.h"
#include "train/stand_in.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whether the checkpoint that was found is of this run, and is not beyond its end. */
static keel_status check(keel_resume *r, const keel_fit_options *o)
{
    char note[160];
    const keel_checkpoint *c = &r->from;
    KEEL_TRY(
        keel_identity_check(json_object_get(c->head, "identity"), r->identity, note, sizeof note));
    if (c->epoch > o->epochs || (c->epoch == o->epochs && c->step > 0))
        return keel_fail(KEEL_EARG,
                         "its run has done %lld epoch%s, and this one is to do %lld: give as many "
                         "at least, or to begin anew another folder",
                         (long long)c->epoch, keel_s(c->epoch), (long long)o->epochs);
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
    const int found = keel_backup_find(o, &folder, &steps, &deletes);
    if (!found) return KEEL_OK;
    if (found > 1)
        return keel_fail(KEEL_EARG,
                         "%d BackupAndRestore: a training goes on from one folder; give "
                         "one",
                         found);
    if (out->folder)
        return keel_fail(KEEL_EARG, "a folder for checkpoints and a BackupAndRestore: give one of "
                                    "them");
    r->deletes = deletes;
    out->folder = folder;
    out->every_steps = steps;
    out->resume = true;
    return KEEL_OK;
}

/* ---- several processes ------------------------------------------------------------------------
 */

/* What processes must have in common: the identity, and what another run may have otherwise. */
static json_t *in_common(const keel_resume *r, const keel_fit_options *o, bool checkpoints)
{
    json_t *all = json_copy(r->identity);
    if (all && !json_object_set_new(all, "epochs", json_integer(o->epochs)) &&
        !json_object_set_new(all, "checkpoint", json_boolean(checkpoints)))
        return all;
    json_decref(all);
    return NULL;
}

/* All processes must be of the run of process 0. */
static keel_status compare(const json_t *all, keel_comm *c)
{
    json_error_t error;
    char *own = all ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    int64_t size[KEEL_PROCESSES_MAX];
    const int64_t own_size = own ? (int64_t)strlen(own) + 1 : 0;
    keel_status s = own ? KEEL_OK : keel_fail(KEEL_ENOMEM, "out of memory");
    char *first = NULL;
    s = keel_comm_agree(c, s, &own_size, 1, size);
    if (s >= 0) { /* else one process has left, and comes to no further agreement */
        first = keel_calloc((size_t)size[0], 1);
        s = keel_comm_agree(c, first ? KEEL_OK : KEEL_ENOMEM, NULL, 0, NULL);
    }
    if (s >= 0) {
        memcpy(first, own, (size_t)(own_size < size[0] ? own_size : size[0]));
        s = keel_comm_broadcast(c, first, (size_t)size[0]);
    }
    if (s >= 0) {
        json_t *of_first = json_loads(first, 0, &error);
        s = of_first ? keel_identity_same(of_first, all)
                     : keel_fail(KEEL_EREMOTE, "process 0 sent no description of its run");
        json_decref(of_first);
        s = keel_comm_agree(c, s, NULL, 0, NULL);
        if (s < 0)
            s = keel_fail_within(s, "all processes must have the same model, data and options as "
                                    "process 0");
    }
    keel_free(first);
    free(own); /* allocated by jansson */
    return s;
}

/* Load a checkpoint from a block, through a file in memory. */
static keel_status load_block(keel_checkpoint *out, const void *block, size_t n_bytes)
{
    char path[40];
    const int fd = memfd_create("checkpoint", MFD_CLOEXEC);
    if (fd < 0) return keel_fail(KEEL_EIO, "no file in memory: %s", strerror(errno));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    keel_status s = KEEL_OK;
    for (size_t done = 0; s >= 0 && done < n_bytes;) {
        const ssize_t n = write(fd, (const char *)block + done, n_bytes - done);
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            s = keel_fail(KEEL_EIO, "a file in memory: %s", strerror(errno));
    }
    if (s >= 0) s = keel_checkpoint_load(out, path);
    close(fd);
    return s < 0 ? keel_fail_within(s, "the checkpoint from process 0") : s;
}

/* Process 0 sends the file that it has found, if any. */
static keel_status pass_on(keel_resume *r, keel_comm *c, keel_status mine, const char *path)
{
    int64_t size[KEEL_PROCESSES_MAX], own = 0;
    size_t n_bytes = 0;
    void *block = NULL;
    if (mine >= 0 && path) mine = keel_file_read(path, SIZE_MAX / 2, &block, &n_bytes);
    own = (int64_t)n_bytes;
    keel_status s = keel_comm_agree(c, mine, &own, 1, size);
    if (s < 0 || size[0] == 0) goto out;
    if (c->group.rank > 0) block = keel_calloc((size_t)size[0], 1);
    s = keel_comm_agree(c, block ? KEEL_OK : KEEL_ENOMEM, NULL, 0, NULL);
    if (s >= 0) s = keel_comm_broadcast(c, block, (size_t)size[0]);
    if (s >= 0 && c->group.rank > 0) {
        s = load_block(&r->from, block, (size_t)size[0]);
        r->found = s >= 0;
    }
out:
    keel_free(block);
    return s;
}

/* ---- the parts of a fit ---------------------------------------------------------------------- */

static keel_status open_folder(keel_resume *r, const keel_checkpoint_options *chosen, char **path)
{
    KEEL_TRY(keel_saver_open(&r->saver, chosen));
    const keel_status s = keel_saver_newest(r->saver, &r->from, path);
    if (s != KEEL_OK) return s < 0 ? s : KEEL_OK;
    r->found = true;
    return KEEL_OK;
}

/* A model whose weights are those of the checkpoint. */
static keel_status take_model(keel_resume *r, keel_model *m, const keel_fit_options *o,
                              const char *folder)
{
    keel_status s = check(r, o);
    if (s >= 0) s = keel_checkpoint_give_model(&r->from, m);
    if (s < 0) return keel_fail_within(s, "the checkpoint in %s", folder);
    tell(r, o);
    return KEEL_OK;
}

keel_status keel_resume_identify(keel_resume *r, const keel_model *m, const keel_strategy *s,
                                 const keel_dataset *data, const keel_fit_options *o)
{
    keel_checkpoint_options *chosen = &r->chosen;
    KEEL_TRY(choose(r, chosen, o));
    if (!chosen->folder && !s->comm) return KEEL_OK;
    r->epochs = o->epochs;
    r->interrupted = chosen->interrupted;
    r->context = chosen->context;
    KEEL_TRY(keel_identity_make(&r->identity, m, s, data, o));
    if (!s->comm) return KEEL_OK;
    json_t *all = in_common(r, o, chosen->folder != NULL);
    const keel_status st = compare(all, s->comm);
    json_decref(all);
    return st;
}

keel_status keel_resume_open(keel_resume *r, keel_model *m, const keel_strategy *s,
                             const keel_fit_options *o)
{
    const keel_checkpoint_options chosen = r->chosen;
    if (!chosen.folder) return KEEL_OK;
    r->takes = true;
    r->by_step = chosen.every_steps || chosen.every_seconds > 0;
    char *path = NULL;
    r->comm = s->comm;
    r->on_line = chosen.on_line;
    keel_status st = KEEL_OK;
    if (s->lanes.process == 0)
        st = open_folder(r, &chosen, &path);
    else if (!(r->folder = keel_strdup(chosen.folder)))
        st = KEEL_ENOMEM;
    if (s->comm) st = pass_on(r, s->comm, st, path);
    keel_free(path);
    if (st < 0 || !r->found) return st;
    return take_model(r, m, o, chosen.folder);
}

keel_status keel_resume_begin(keel_resume *r, const keel_standing *st)
{
    if (r->saver) KEEL_TRY(keel_saver_begin(r->saver, st->trainer->model));
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

/* Of a sharded optimizer all processes must come here, whether they write or not: process 0 is
 * given what it takes. */
static keel_status take_if(keel_resume *r, const keel_standing *st, bool due)
{
    const keel_status s = keel_sharded_gather_if(st->trainer, due);
    if (s == KEEL_END && due)
        keel_saver_tell(r->saver, "a checkpoint could not be made: %.800s", keel_error());
    if (s == KEEL_OK && due) keel_saver_take(r->saver, st);
    return s < 0 ? s : KEEL_OK;
}

keel_status keel_resume_step(keel_resume *r, const keel_standing *st)
{
    if (!r->by_step) return KEEL_OK;
    return take_if(r, st, r->saver && !r->over && keel_saver_step(r->saver));
}

keel_status keel_resume_epoch(keel_resume *r, const keel_standing *st)
{
    if (!r->takes || r->by_step) return KEEL_OK;
    return take_if(r, st, r->saver && !r->over);
}

bool keel_resume_from_outside(const keel_resume *r)
{
    if (r->outside) return true;
    return r->interrupted && r->interrupted(r->context);
}

keel_status keel_resume_stop(keel_resume *r, const keel_standing *st)
{
    const bool ends = r->saver && !r->over && keel_resume_from_outside(r);
    if (!r->takes) return KEEL_OK;
    KEEL_TRY(take_if(r, st, ends && keel_saver_end(r->saver, st)));
    if (!ends) return KEEL_OK;
    keel_saver_wait(r->saver);
    r->over = true;
    return KEEL_OK;
}

static void stand_in(keel_resume *r, const keel_standing *st)
{
    r->over = true;
    const keel_status s = keel_stand_in(r->folder, r->comm, keel_resume_from_outside(r), st);
    if (s >= 0 || !r->on_line) return;
    char line[KEEL_ERROR_MAX];
    snprintf(line, sizeof line, "the last checkpoint could not be written: %.800s", keel_error());
    r->on_line(r->context, line);
}

/* Whether a part of the optimizer's state is lost, so that this process has no checkpoint to write.
 * Only process 0 has what was gathered, and it may be the lost one. */
static bool state_is_lost(const keel_resume *r, const keel_standing *st)
{
    const keel_trainer *t = st->trainer;
    return t->sharded && r->comm && r->comm->lost &&
           (!t->sharded->gathered || t->model->compiled.stateless);
}

static keel_status write_last(keel_resume *r, keel_standing *st, bool stopped)
{
    bool due = false;
    if (r->saver && !r->over) {
        st->finished = r->found && r->from.finished;
        if (stopped && !keel_resume_from_outside(r)) st->finished = true;
        due = keel_saver_end(r->saver, st);
    }
    KEEL_TRY(take_if(r, st, due));
    if (!r->saver || r->over) return KEEL_OK;
    keel_saver_wait(r->saver);
    if (r->deletes && (st->finished || st->epoch >= r->epochs)) keel_saver_remove(r->saver);
    return KEEL_OK;
}

keel_status keel_resume_end(keel_resume *r, keel_standing *st, bool stopped)
{
    keel_status s = KEEL_OK;
    if (!r->takes || !st->identity) return KEEL_OK;
    if (!r->over && state_is_lost(r, st))
        keel_saver_tell(r->saver, "no checkpoint of this step could be written, since a part of "
                                  "the optimizer's state is lost with a process; those before it "
                                  "stay");
    else if (!r->over && r->folder && r->comm->lost)
        stand_in(r, st);
    else
        s = write_last(r, st, stopped);
    r->over = true;
    keel_saver_sum_up(r->saver);
    return s;
}

void keel_resume_close(keel_resume *r)
{
    keel_saver_close(r->saver);
    keel_checkpoint_free(&r->from);
    keel_free(r->folder);
    json_decref(r->identity);
    *r = (keel_resume){ 0 };
}
