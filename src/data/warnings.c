/* See warnings.h. Of all files the first few by name are kept, so that the text does not depend on
 * threads. */
#include "data/warnings.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/quarantine.h"
#include "data/stage.h"
#include "data/trail.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 3 };

struct keel_warnings {
    keel_row_set files;
    struct {
        char file[160], text[120];
    } kept[KEPT]; /* by name */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* they are rare */

static void keep(keel_warnings *w, const char *file, const char *text)
{
    char name[sizeof w->kept[0].file];
    keel_printable(name, sizeof name, file);
    for (int i = 0; i < KEPT; i++) {
        if (*w->kept[i].file && strcmp(name, w->kept[i].file) >= 0) continue;
        memmove(&w->kept[i + 1], &w->kept[i], (size_t)(KEPT - 1 - i) * sizeof w->kept[0]);
        snprintf(w->kept[i].file, sizeof w->kept[i].file, "%s", name);
        keel_printable(w->kept[i].text, sizeof w->kept[i].text, text);
        return;
    }
}

void keel_warn(const keel_scratch *scratch, const char *what, const char *text)
{
    const keel_trail *t = scratch->trail;
    const keel_data_origin *in = t ? atomic_load(&t->in) : NULL;
    if (!in || (in->applied && in != t->shown)) return;
    keel_data_origin *o = (keel_data_origin *)(uintptr_t)in;
    pthread_mutex_lock(&lock);
    if (!o->warnings) o->warnings = keel_calloc(1, sizeof *o->warnings);
    if (o->warnings && keel_row_set_add(&o->warnings->files, what, -1))
        keep(o->warnings, what, text);
    pthread_mutex_unlock(&lock);
}

void keel_warnings_destroy(keel_warnings *w)
{
    if (w) keel_row_set_free(&w->files);
    keel_free(w);
}

/* The files of all sources; *t gets those that are kept. */
static int64_t count(const keel_dataset *d, keel_text *t)
{
    const keel_applied *s = d->origin->applied;
    const keel_warnings *w = d->origin->warnings;
    int64_t n = w ? w->files.n : 0;
    for (int i = 0; w && i < KEPT && *w->kept[i].file; i++)
        keel_text_add(t, "%s%s: %s", t->length ? "; " : "", w->kept[i].file, w->kept[i].text);
    for (int i = 0; s && i < s->n_parent; i++) n += count(s->parent[i], t);
    return n;
}

int64_t keel_dataset_warnings(const keel_dataset *d, char *text, size_t size)
{
    keel_text t = { 0 };
    pthread_mutex_lock(&lock);
    const int64_t n = count(d, &t);
    pthread_mutex_unlock(&lock);
    if (size) *text = 0;
    if (n)
        snprintf(text, size, "%lld %s: %s%s", (long long)n,
                 n == 1 ? "file gave a warning" : "files gave warnings", t.data ? t.data : "",
                 n > KEPT ? "; ..." : "");
    keel_text_free(&t);
    return n;
}
