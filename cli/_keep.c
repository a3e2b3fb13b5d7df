/* See keep.h. */
#define _GNU_SOURCE /* fallocate */
#include "keep.h"
#include "processes.h"
#include "setup.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME = 4096, MOST_NAMES = 100 };
static const char ENDING[] = ".keras";

/* ---- the name of what is saved before its time ------------------------------------------------
 */

/* "out.interrupted.keras", "out.interrupted-2.keras" */
static bool name_numbered(char out[NAME], const char *folder, const char *path, int i)
{
    const char *slash = strrchr(path, '/'), *name = folder && slash ? slash + 1 : path;
    const int n = (int)(strlen(name) - (sizeof ENDING - 1));
    char number[16] = "";
    if (i > 1) snprintf(number, sizeof number, "-%d", i);
    return snprintf(out, NAME, "%s%s%.*s.interrupted%s%s", folder ? folder : "", folder ? "/" : "",
                    n, name, number, ENDING) < NAME;
}

/* A name that is not taken: what such a file has may be wanted. */
static bool name_rescue(char out[NAME], const char *folder, const char *path)
{
    for (int i = 1; i < MOST_NAMES; i++)
        if (name_numbered(out, folder, path, i) && access(out, F_OK)) return true;
    return false;
}

static const char *temporary_folder(void)
{
    const char *t = getenv("TMPDIR");
    return t && *t ? t : "/tmp";
}

/* From this number on no name is taken. */
static int first_unused(const char *path)
{
    char name[NAME];
    for (int i = MOST_NAMES - 1; i > 0; i--)
        if ((name_numbered(name, NULL, path, i) && !access(name, F_OK)) ||
            (name_numbered(name, temporary_folder(), path, i) && !access(name, F_OK)))
            return i + 1;
    return 1;
}

/* ---- before ---------------------------------------------------------------------------------- */

/* Whether so many bytes can be written there, by making and removing a file of that size. A file
 * system that cannot reserve them is believed. */
static int try_room(const char *path, int64_t bytes)
{
    char a[KEEL_NUMBER_MAX];
    const int fd = keel_setup_try_beside(path);
    if (fd < 0) return -1; /* keel_setup_output has tried this */
    const int failed = fallocate(fd, 0, 0, bytes) ? errno : 0;
    close(fd);
    if (failed != ENOSPC && failed != EFBIG && failed != EDQUOT) return -1;
    return keel_complain(EXIT_FAILED,
                         "-o '%s': the model takes %s at least, and they cannot be written there: "
                         "%s; make room, or name a file elsewhere",
                         path, keel_size_text(a, bytes), strerror(failed));
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
    if (keel_processes_machines()) keel_processes_number(first_unused(output));
    if (!keel_processes_first()) {
        k->spare = output;
        return -1;
    }
    const keel_status s = keel_claim_take(&claim, output);
    k->claim = claim;
    if (s < 0) return keel_complain_within(s, "-o");
    k->output = output;
    k->history = history;
    return -1;
}

int keel_keeper_try_room(const keel_keeper *k)
{
    if (!k->output) return -1;
    return try_room(k->output,
                    4 * keel_model_count_params(k->model, NULL) + keel_model_state_bytes(k->model));
}

void keel_keeper_end(keel_keeper *k)
{
    if (k->lines) fclose(k->lines);
    keel_claim_release(atomic_exchange(&k->claim, NULL));
    k->lines = NULL;
}

/* ---- after ----------------------------------------------------------------------------------- */

typedef keel_status (*saver)(const keel_model *m, const char *path);

/* Of several processes one saves, under a name that all know: whoever claims it first. */
static keel_status save_one(const char *path, const keel_model *m, saver save, double seconds)
{
    keel_claim *claim = NULL;
    keel_status s = keel_claim_first(&claim, path, seconds);
    if (s != KEEL_OK) return s == KEEL_END ? KEEL_EREMOTE : s;
    s = save(m, path);
    keel_claim_release(claim);
    return s;
}

/* Save beside the output, else among temporary files; `out` gets the name. KEEL_EREMOTE: another
 * process has. seconds: to wait for one. */
static keel_status rescue(const keel_keeper *k, saver save, double seconds, char out[NAME])
{
    const char *folders[] = { NULL, temporary_folder() };
    const char *output = k->output ? k->output : k->spare;
    const int number = keel_processes_number_agreed();
    keel_status s = KEEL_EIO;
    for (int i = 0; i < 2 && s == KEEL_EIO; i++) {
        if (number && name_numbered(out, folders[i], output, number))
            s = save_one(out, k->model, save, i ? 0 : seconds);
        else if (!number && name_rescue(out, folders[i], output))
            s = save(k->model, out);
    }
    return s;
}

static const char *what_lacks(const keel_model *m)
{
    return keel_model_has_state(m) ? ""
                                   : ", without the optimizer's state, of which processes had "
                                     "parts: --resume goes on from the last checkpoint";
}

static void complain_of_rescue(const keel_keeper *k, const char *why, keel_status s,
                               const char *path)
{
    if (s == KEEL_OK)
        keel_complain(EXIT_FAILED, "%s; the model after step %lld of epoch %lld is saved as %s%s",
                      why, k->step, k->epoch, path, what_lacks(k->model));
    else if (s == KEEL_EREMOTE)
        keel_complain(EXIT_FAILED, "%s; another process has saved the model as %s", why, path);
    else
        keel_complain(EXIT_FAILED, "%s; what was learned until step %lld of epoch %lld is lost: %s",
                      why, k->step, k->epoch, keel_error());
}

void keel_keeper_rescue(keel_keeper *k, const char *why)
{
    char path[NAME], text[1200];
    k->rescued = true;
    snprintf(text, sizeof text, "%s", why); /* it may be the text of the last error */
    keel_complain_about(text);
    const double turn = keel_processes_turn();
    if (!k->learned || (!k->output && turn < 0)) {
        keel_complain(EXIT_FAILED, "%s", text);
        return;
    }
    const keel_status s = rescue(k, keel_model_save, turn, path);
    if (s == KEEL_EREMOTE && !k->output) {
        keel_processes_told();
        return;
    }
    complain_of_rescue(k, text, s, path);
    if (!k->output) keel_processes_speak();
}

void keel_keeper_stand_in(keel_keeper *k)
{
    char path[NAME];
    if (k->output || !k->learned || k->rescued || !keel_processes_first_lost()) return;
    const keel_status s = rescue(k, keel_model_save, keel_processes_turn(), path);
    if (s == KEEL_EREMOTE) {
        keel_processes_told();
        return;
    }
    complain_of_rescue(k, "the first process is lost", s, path);
    keel_processes_speak();
}

void keel_keeper_leave(void *keeper, const char *why)
{
    keel_keeper *k = keeper;
    char path[NAME];
    if (k->learned && k->output) {
        const keel_status s = rescue(k, keel_fit_save, 0, path);
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
        const keel_status s = rescue(k, keel_fit_save, 0, path);
        if (s == KEEL_END) return; /* the training has ended: it is being saved */
        complain_of_rescue(k, why, s, path);
    }
    keel_claim_release(atomic_exchange(&k->claim, NULL));
    _exit(128 + signal);
}

int keel_keeper_complain(const keel_keeper *k, keel_status s)
{
    if (!k->output || keel_model_has_state(k->model)) return keel_complain_status(s);
    return keel_complain(keel_exit_code(s), "%s; the model is saved as %s%s", keel_error(),
                         k->output, what_lacks(k->model));
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
