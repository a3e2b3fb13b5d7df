/* See saver.h. */
#include "train/saver.h"
#include "base/c_locale.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/parts.h"
#include "train/finite.h"
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KEEP = 2, KEEP_MAX = 10000 };
static const char BEGIN[] = "checkpoint-", END[] = ".keras";

struct keel_saver {
    keel_checkpoint_options o;
    char *folder;
    keel_claim *claim;
    char line[KEEL_ERROR_MAX];
    int64_t steps;       /* since the last one was taken */
    double time;         /* when it was */
    int64_t epoch, step; /* its place; -1: none yet */
    bool finished;
    bool taken;     /* one whose end was not looked at */
    int64_t failed; /* in succession; only of the first a line is told at once */
    bool late;      /* one is due since the thread was busy */
    bool transient; /* the optimizer's state has memory only while it is written */

    keel_snapshot *shot; /* of the thread while `full` */
    void *block;
    size_t n_bytes;
    char name[KEEL_SAVER_NAME];
    bool full, quit; /* guarded by `lock`, like the next */
    keel_failure failure;
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t thread;
    bool started;
};

void keel_saver_tell(keel_saver *s, const char *format, ...)
{
    va_list ap;
    if (!s) return;
    va_start(ap, format);
    keel_vsnprintf(s->line, sizeof s->line, format, ap);
    va_end(ap);
    if (s->o.on_line) s->o.on_line(s->o.context, s->line);
}

const char *keel_saver_line(const keel_saver *s)
{
    return s && s->line[0] ? s->line : NULL;
}

/* ---- the folder ------------------------------------------------------------------------------ */

static char *path_of(const keel_saver *s, const char *name)
{
    keel_text t = { 0 };
    keel_text_add(&t, "%s/%s", s->folder, name);
    if (!t.failed) return t.data;
    keel_text_free(&t);
    return NULL;
}

/* Whether it is "checkpoint-DIGITS-DIGITS.keras"; temporary: with more behind it that ends in
 * ".tmp", as a killed process leaves it. */
static bool is_checkpoint(const char *name, bool temporary)
{
    const size_t n = strlen(name);
    if (strncmp(name, BEGIN, sizeof BEGIN - 1) != 0) return false;
    const char *p = name + sizeof BEGIN - 1;
    const size_t first = strspn(p, "0123456789");
    if (!first || p[first] != '-') return false;
    p += first + 1;
    const size_t second = strspn(p, "0123456789");
    if (!second || strncmp(p + second, END, sizeof END - 1) != 0) return false;
    p += second + sizeof END - 1;
    return temporary ? *p && n > 4 && !strcmp(name + n - 4, ".tmp") : !*p && n < KEEL_SAVER_NAME;
}

void keel_saver_name(char out[KEEL_SAVER_NAME], const keel_standing *st)
{
    snprintf(out, KEEL_SAVER_NAME, "%s%06lld-%09lld%s", BEGIN, (long long)st->epoch,
             (long long)st->step, END);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)b, *(char *const *)a);
}

static void free_names(char **names, int64_t n)
{
    for (int64_t i = 0; i < n; i++) keel_free(names[i]);
    keel_free(names);
}

/* The checkpoints of the folder, newest first, or what killed processes left of them. */
static keel_status list_names(const keel_saver *s, bool temporary, char ***out, int64_t *count)
{
    char **names = NULL;
    int64_t n = 0;
    keel_status st = KEEL_OK;
    const struct dirent *e;
    DIR *d = opendir(s->folder);
    if (!d) return keel_fail(KEEL_EIO, "%s: %s", s->folder, strerror(errno));
    while (st >= 0 && (e = readdir(d))) {
        if (!is_checkpoint(e->d_name, temporary)) continue;
        char **more = keel_grow(names, (size_t)n + 1, sizeof *names);
        if (more) names = more;
        if (!more || !(names[n] = keel_strdup(e->d_name)))
            st = KEEL_ENOMEM;
        else
            n++;
    }
    closedir(d);
    if (st < 0) {
        free_names(names, n);
        return st;
    }
    if (n) qsort(names, (size_t)n, sizeof *names, by_name);
    *out = names;
    *count = n;
    return KEEL_OK;
}

static void remove_name(const keel_saver *s, const char *name)
{
    char *path = path_of(s, name);
    if (path) unlink(path);
    keel_free(path);
}

/* Remove all but the newest; a failure leaves files that nobody needs. */
static void remove_old(const keel_saver *s)
{
    char **names = NULL;
    int64_t n = 0;
    if (list_names(s, false, &names, &n) < 0) return;
    for (int64_t i = s->o.keep; i < n; i++) remove_name(s, names[i]);
    free_names(names, n);
}

static keel_status clean(const keel_saver *s)
{
    char **names = NULL;
    int64_t n = 0;
    KEEL_TRY(list_names(s, true, &names, &n));
    for (int64_t i = 0; i < n; i++) remove_name(s, names[i]);
    free_names(names, n);
    return KEEL_OK;
}

static void set_aside(keel_saver *s, const char *path, const char *name, bool other)
{
    keel_text t = { 0 };
    char why[KEEL_ERROR_MAX];
    snprintf(why, sizeof why, "%.400s", keel_error());
    keel_text_add(&t, "%s.damaged", path);
    const bool moved = !t.failed && rename(path, t.data) == 0;
    keel_saver_tell(s, "the checkpoint %s is damaged (%s)%s; %s", name, why,
                    moved ? " and now named .damaged" : "",
                    other ? "the one before it is used" : "there is none before it");
    keel_text_free(&t);
}

keel_status keel_saver_newest(keel_saver *s, keel_checkpoint *out, char **path_out)
{
    char **names = NULL;
    int64_t n = 0;
    keel_status st = KEEL_END;
    if (!s->o.resume) return KEEL_END;
    KEEL_TRY(list_names(s, false, &names, &n));
    for (int64_t i = 0; i < n && st == KEEL_END; i++) {
        char *path = path_of(s, names[i]);
        st = path ? keel_checkpoint_load(out, path) : KEEL_ENOMEM;
        if (st == KEEL_EFORMAT || st == KEEL_EIO) {
            set_aside(s, path, names[i], i + 1 < n);
            st = i + 1 < n ? KEEL_END
                           : keel_fail(KEEL_EFORMAT,
                                       "%s: all of its %lld checkpoints are damaged: to begin "
                                       "anew, give another folder",
                                       s->folder, (long long)n);
        }
        if (st == KEEL_OK && path_out)
            *path_out = path;
        else
            keel_free(path);
    }
    free_names(names, n);
    return st;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static keel_status write_one(const keel_saver *s)
{
    const keel_zip_member state = { KEEL_STATE_MEMBER, s->block, s->n_bytes };
    char *path = path_of(s, s->name);
    if (!path) return KEEL_ENOMEM;
    const keel_status st = keel_snapshot_write(s->shot, &state, path);
    keel_free(path);
    if (st >= 0) remove_old(s);
    return st;
}

static void *work(void *saver)
{
    keel_saver *s = saver;
    pthread_mutex_lock(&s->lock);
    while (!s->quit || s->full) {
        if (!s->full) {
            pthread_cond_wait(&s->change, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        const keel_status st = write_one(s);
        if (s->transient) keel_compiled_state_leave(&s->shot->model.compiled);
        pthread_mutex_lock(&s->lock);
        if (st < 0) keel_failure_take(&s->failure, st);
        keel_free(s->block);
        s->block = NULL;
        s->full = false;
        pthread_cond_broadcast(&s->change);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* With the lock held: tell of what the thread could not write, and when it can again. */
static void tell_end(keel_saver *s)
{
    if (s->full || !s->taken) return;
    s->taken = false;
    if (s->failure.status >= 0) {
        if (s->failed)
            keel_saver_tell(s, "a checkpoint is written again, after %lld that could not be",
                            (long long)s->failed);
        s->failed = 0;
        return;
    }
    s->failure.status = KEEL_OK;
    if (s->failed++) return;
    keel_saver_tell(s, "a checkpoint could not be written, and those before it stay: %.800s",
                    s->failure.text);
}

/* Whether the thread is still writing. */
static bool is_busy(keel_saver *s)
{
    pthread_mutex_lock(&s->lock);
    tell_end(s);
    const bool busy = s->full;
    pthread_mutex_unlock(&s->lock);
    return busy;
}

void keel_saver_take(keel_saver *s, const keel_standing *st)
{
    keel_saver_wait(s);
    if (keel_finite_lost(st->trainer) >= 0) return; /* the fit ends soon, and says so */
    keel_status r = keel_snapshot_take(s->shot, st->trainer);
    if (r >= 0) r = keel_standing_encode(st, &s->block, &s->n_bytes);
    if (r < 0) keel_saver_tell(s, "a checkpoint could not be made: %.800s", keel_error());
    s->steps = 0;
    s->time = keel_seconds();
    if (r < 0) return;
    s->epoch = st->epoch;
    s->step = st->step;
    s->finished = st->finished;
    keel_saver_name(s->name, st);
    pthread_mutex_lock(&s->lock);
    s->full = s->taken = true;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

bool keel_saver_step(keel_saver *s)
{
    s->steps++;
    const bool due = s->late || (s->o.every_steps && s->steps >= s->o.every_steps) ||
                     (s->o.every_seconds > 0 && keel_seconds() - s->time >= s->o.every_seconds);
    s->late = due && is_busy(s);
    return due && !s->late;
}

bool keel_saver_end(const keel_saver *s, const keel_standing *st)
{
    return s->epoch != st->epoch || s->step != st->step || s->finished != st->finished;
}

void keel_saver_wait(keel_saver *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->full) pthread_cond_wait(&s->change, &s->lock);
    tell_end(s);
    pthread_mutex_unlock(&s->lock);
}

void keel_saver_sum_up(keel_saver *s)
{
    if (!s || s->failed < 2) return;
    keel_saver_tell(s, "the last %lld checkpoints could not be written: %.800s",
                    (long long)s->failed, s->failure.text);
    s->failed = 0;
}

/* ---- open, close ----------------------------------------------------------------------------- */

static keel_status check(const keel_checkpoint_options *o)
{
    if (!*o->folder) return keel_fail(KEEL_EARG, "checkpoint: give a folder");
    if (o->every_steps < 0 || !(o->every_seconds >= 0))
        return keel_fail(KEEL_EARG, "checkpoint: every %lld steps, every %g seconds",
                         (long long)o->every_steps, o->every_seconds);
    if (o->keep && (o->keep < 2 || o->keep > KEEP_MAX))
        return keel_fail(KEEL_EARG,
                         "checkpoint: keep %lld: it must be 2 to %d, so that one is "
                         "left if the newest is damaged",
                         (long long)o->keep, KEEP_MAX);
    return KEEL_OK;
}

keel_status keel_saver_make_folder(const char *folder)
{
    struct stat st;
    if (!stat(folder, &st) && !S_ISDIR(st.st_mode))
        return keel_fail(KEEL_EIO, "%s: checkpoints need a folder, and this is a file", folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return keel_fail(KEEL_EIO, "%s: the folder for checkpoints cannot be made: %s", folder,
                         strerror(errno));
    return KEEL_OK;
}

static keel_status open_folder(keel_saver *s)
{
    char **names = NULL;
    int64_t n = 0;
    KEEL_TRY(keel_saver_make_folder(s->folder));
    char *claimed = path_of(s, "checkpoint");
    const keel_status st = claimed ? keel_claim_take(&s->claim, claimed) : KEEL_ENOMEM;
    keel_free(claimed);
    KEEL_TRY(st);
    KEEL_TRY(clean(s));
    if (s->o.resume) return KEEL_OK;
    KEEL_TRY(list_names(s, false, &names, &n));
    free_names(names, n);
    return n ? keel_fail(KEEL_EARG,
                         "%s: it has checkpoints of an earlier run: resume to go on from them, or "
                         "give another folder",
                         s->folder)
             : KEEL_OK;
}

keel_status keel_saver_open(keel_saver **out, const keel_checkpoint_options *o)
{
    KEEL_TRY(check(o));
    keel_saver *s = keel_calloc(1, sizeof *s);
    if (!s) return KEEL_ENOMEM;
    s->o = *o;
    if (!s->o.keep) s->o.keep = KEEP;
    s->epoch = s->step = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    keel_status st = (s->folder = keel_strdup(o->folder)) ? open_folder(s) : KEEL_ENOMEM;
    if (st >= 0) {
        s->started = pthread_create(&s->thread, NULL, work, s) == 0;
        if (!s->started) st = keel_fail(KEEL_ENOMEM, "checkpoint: no thread could be started");
    }
    if (st < 0) {
        keel_saver_close(s);
        return st;
    }
    *out = s;
    return KEEL_OK;
}

void keel_saver_close(keel_saver *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
    if (s->started) pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->change);
    pthread_mutex_destroy(&s->lock);
    keel_snapshot_destroy(s->shot);
    keel_claim_release(s->claim);
    keel_free(s->block);
    keel_free(s->folder);
    keel_free(s);
}

void keel_saver_remove(keel_saver *s)
{
    s->o.keep = 0;
    remove_old(s);
    keel_claim_release(s->claim);
    s->claim = NULL;
    rmdir(s->folder); /* fails if it has other files */
}

keel_status keel_saver_begin(keel_saver *s, const keel_model *m)
{
    s->time = keel_seconds();
    s->transient = m->compiled.stateless;
    return keel_snapshot_create(&s->shot, m);
}
