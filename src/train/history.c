/* See history.h. */
#include "train/history.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/file.h"
#include "train/profile.h"
#include <math.h>
#include <string.h>

keel_status keel_history_begin(keel_history *h, const keel_logs *names, int64_t epochs)
{
    h->value = keel_calloc((size_t)epochs * (size_t)names->count, sizeof *h->value);
    if (!h->value) return KEEL_ENOMEM;
    for (; h->count < names->count; h->count++)
        if (!(h->name[h->count] = keel_strdup(names->name[h->count]))) return KEEL_ENOMEM;
    return KEEL_OK;
}

void keel_history_add(keel_history *h, const keel_logs *logs)
{
    double *row = &h->value[h->epochs++ * h->count];
    for (int i = 0; i < h->count; i++) row[i] = keel_logs_get(logs, h->name[i]);
}

void keel_history_free(keel_history *h)
{
    if (!h) return;
    for (int i = 0; i < h->count; i++) keel_free(h->name[i]);
    keel_free(h->value);
    keel_free(h->note);
    keel_profile_destroy(h->profile);
    keel_free(h->input);
    *h = (keel_history){ 0 };
}

/* Add a name as a CSV field; the name of a metric may have a comma. */
static void add_name(keel_text *t, const char *name)
{
    const bool quoted = strpbrk(name, ",\"\r\n") != NULL;
    keel_text_add(t, quoted ? ",\"" : ",");
    for (; *name; name++) keel_text_add(t, *name == '"' ? "\"%c" : "%c", *name);
    if (quoted) keel_text_add(t, "\"");
}

keel_status keel_history_save(const keel_history *h, const char *path)
{
    keel_text t = { 0 };
    keel_text_add(&t, "epoch");
    for (int i = 0; i < h->count; i++) add_name(&t, h->name[i]);
    keel_text_add(&t, "\n");
    for (int64_t e = 0; e < h->epochs; e++) {
        keel_text_add(&t, "%lld", (long long)(h->initial_epoch + e));
        for (int i = 0; i < h->count; i++) keel_text_add(&t, ",%.9g", h->value[e * h->count + i]);
        keel_text_add(&t, "\n");
    }
    const keel_status s = t.failed ? KEEL_ENOMEM : keel_file_write(path, t.data, t.length);
    keel_text_free(&t);
    return s;
}
