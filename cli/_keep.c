/* See keep.h. */
#define _GNU_SOURCE /* fallocate */
#include "keep.h"
#include "processes.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 4096, MOST_NAMES = 100 };
static const char ENDING[] = ".keras";

/* ---- before ---------------------------------------------------------------------------------- */

/* Whether so many bytes can be written there, by making and removing a file of that size. A file
 * system that cannot reserve them is believed. */
static int try_room(const char *path, int64_t bytes)
{
    char tried[NAME], a[KEEL_NUMBER_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(tried, sizeof tried, "%.*s.keel-try-XXXXXX", slash ? (int)(slash - path) + 1 : 0,
             path);
    const int fd = mkstemp(tried);
    if (fd < 0) return -1; /* keel_setup_output has tried this */
    const int failed = fallocate(fd, 0, 0, bytes) ? errno : 0;
    close(fd);
    unlink(tried);
    if (failed != ENOSPC && failed != EFBIG && failed != EDQUOT) return -1;
    return keel_complain(EXIT_FAILED,
                         "-o '%s': the model takes %s at least, and they cannot be written there: "
                         "%s; make room, or name a file elsewhere",
                         path, keel_bytes_text(a, bytes), strerror(failed));
}

static void put_name(FILE *f, const char *name)
{
    const bool quoted = strpbrk(name, ",\"\r\n") != NULL;
    fputs(quoted ? ",\"" : ",", f);
    for (; *name; name++) {
        if (*name == '"') fputc('"', f);
        fputc(*name, f);
    }
    if (quoted) fputc('"', f);
}

/* Of a history that a run which is resumed has left: the lines of epochs before this one. */
static char *lines_before(const char *path, int64_t epoch)
{
    size_t n = 0, used = 0;
    ssize_t got;
    char *line = NULL, *all = NULL;
    FILE *f = epoch > 0 ? fopen(path, "r") : NULL;
    while (f && (got = getline(&line, &n, f)) > 0) {
        const bool header = used == 0 && !strncmp(line, "epoch,", 6);
        if (!header && (used == 0 || atoll(line) >= epoch || line[got - 1] != '\n')) break;
        char *more = realloc(all, used + (size_t)got + 1);
        if (!more) break;
        all = more;
        memcpy(all + used, line, (size_t)got + 1);
        used += (size_t)got;
    }
    free(line);
    if (f) fclose(f);
    return all;
}

static void open_lines(keel_keeper *k, const keel_moment *at)
{
    char *before = lines_before(k->history, at->epoch);
    k->lines = fopen(k->history, "we");
    for (int i = 0; i < at->logs->count && i < KEEL_LOGS_MAX; i++)
        snprintf(k->columns[k->n_column++], sizeof k->columns[0], "%s", at->logs->name[i]);
    if (k->lines && before) fputs(before, k->lines);
    if (k->lines && !before) {
        fputs("epoch", k->lines);
        for (int i = 0; i < k->n_column; i++) put_name(k->lines, k->columns[i]);
        fputc('\n', k->lines);
    }
    free(before);
}

static void complain_of_lines(keel_keeper *k)
{
    const int why = errno;
    if (k->lines_failed) return;
    k->lines_failed = true;
    keel_complain(EXIT_FAILED,
                  "--history %s: %s; training goes on, and at its end all is tried again",
                  k->history, strerror(why));
}

static keel_status on_epoch_end(void *keeper, const keel_moment *at)
{
    keel_keeper *k = keeper;
    if (!k->history || k->lines_failed) return KEEL_OK;
    if (!k->lines) open_lines(k, at);
    if (!k->lines) {
        complain_of_lines(k);
        return KEEL_OK;
    }
    fprintf(k->lines, "%lld", (long long)at->epoch);
    for (int i = 0; i < k->n_column; i++)
        fprintf(k->lines, ",%.9g", keel_logs_get(at->logs, k->columns[i]));
    fputc('\n', k->lines);
    if (fflush(k->lines) || ferror(k->lines)) complain_of_lines(k);
    return KEEL_OK;
}

static keel_status on_step(void *keeper, const keel_moment *at)
{
    keel_keeper *k = keeper;
    k->epoch = at->epoch + 1;
    k->step = at->step;
    k->learned = true;
    return KEEL_OK;
}

int keel_keeper_begin(keel_keeper *k, const char *output, const char *history, const keel_model *m)
{
    keel_claim *claim = NULL;
    k->model = m;
    k->callback = (keel_callback){ KEEL_CALLBACK, .name = "history", .context = k,
                                   .on_train_batch_end = on_step, .on_epoch_end = on_epoch_end };
    if (!keel_processes_first()) return -1;
    const keel_status s = keel_claim_take(&claim, output);
    k->claim = claim;
    if (s < 0) return keel_complain_within(s, "-o");
    k->output = output;
    k->history = history;
    return try_room(output, 4 * keel_model_count_params(m, NULL));
}

void keel_keeper_end(keel_keeper *k)
{
    if (k->lines) fclose(k->lines);
    keel_claim_release(atomic_exchange(&k->claim, NULL));
    k->lines = NULL;
}

/* ---- after ----------------------------------------------------------------------------------- */

/* "out.interrupted.keras", or with a number if that name is taken: what it has may be wanted. */
static bool name_rescue(char out[NAME], const char *folder, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = folder && slash ? slash + 1 : path;
    const int n = (int)(strlen(name) - (sizeof ENDING - 1));
    for (int i = 1; i < MOST_NAMES; i++) {
        char number[16] = "";
        if (i > 1) snprintf(number, sizeof number, "-%d", i);
        const int length = snprintf(out, NAME, "%s%s%.*s.interrupted%s%s", folder ? folder : "",
                                    folder ? "/" : "", n, name, number, ENDING);
        if (length >= NAME) return false;
        if (access(out, F_OK)) return true;
    }
    return false;
}

static const char *temporary_folder(void)
{
    const char *t = getenv("TMPDIR");
    return t && *t ? t : "/tmp";
}

typedef keel_status (*saver)(const keel_model *m, const char *path);

/* Save beside the output, else among temporary files; `out` gets the name. */
static keel_status rescue(const keel_keeper *k, saver save, char out[NAME])
{
    keel_status s = KEEL_EIO;
    if (name_rescue(out, NULL, k->output)) s = save(k->model, out);
    if (s == KEEL_EIO && name_rescue(out, temporary_folder(), k->output)) s = save(k->model, out);
    return s;
}

static void complain_of_rescue(const keel_keeper *k, const char *why, keel_status s,
                               const char *path)
{
    if (s == KEEL_OK)
        keel_complain(EXIT_FAILED, "%s; the model after step %lld of epoch %lld is saved as %s",
                      why, k->step, k->epoch, path);
    else
        keel_complain(EXIT_FAILED, "%s; what was learned until step %lld of epoch %lld is lost: %s",
                      why, k->step, k->epoch, keel_error());
}

void keel_keeper_rescue(keel_keeper *k, const char *why)
{
    char path[NAME], text[1200];
    snprintf(text, sizeof text, "%s", why); /* it may be the text of the last error */
    keel_complain_about(text);
    if (!k->learned || !k->output) {
        keel_complain(EXIT_FAILED, "%s", text);
        return;
    }
    const keel_status s = rescue(k, keel_model_save, path);
    complain_of_rescue(k, text, s, path);
}

void keel_keeper_leave(void *keeper, const char *why)
{
    keel_keeper *k = keeper;
    char path[NAME];
    if (k->learned && k->output) {
        const keel_status s = rescue(k, keel_fit_save, path);
        complain_of_rescue(k, why, s, path);
    } else {
        keel_complain(EXIT_FAILED, "%s", why);
    }
    keel_claim_release(atomic_exchange(&k->claim, NULL));
}

void keel_keeper_quit(void *keeper, int signal)
{
    keel_keeper *k = keeper;
    char path[NAME], why[64];
    snprintf(why, sizeof why, "stopped by signal %d, a second time", signal);
    if (k->learned && k->output) {
        const keel_status s = rescue(k, keel_fit_save, path);
        if (s == KEEL_END) return; /* the training has ended: it is being saved */
        complain_of_rescue(k, why, s, path);
    }
    keel_claim_release(atomic_exchange(&k->claim, NULL));
    _exit(128 + signal);
}

int keel_keeper_save(keel_keeper *k)
{
    char why[1200], path[NAME];
    keel_status s = keel_model_save(k->model, k->output);
    if (s >= 0) return EXIT_OK;
    snprintf(why, sizeof why, "%s", keel_error());
    const int code = s == KEEL_EUNSUP ? EXIT_UNSUPPORTED : EXIT_FAILED;
    s = name_rescue(path, temporary_folder(), k->output) ? keel_model_save(k->model, path) : s;
    if (s >= 0)
        keel_complain(code, "%s; the trained model is saved as %s instead: move it", why, path);
    else
        keel_complain(code, "%s; there is no room in %s either, so the trained model is lost", why,
                      temporary_folder());
    return code;
}
