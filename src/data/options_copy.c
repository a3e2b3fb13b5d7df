/* See options_copy.h. */
#include "data/options_copy.h"
#include "base/memory.h"
#include <string.h>

/* Take a block over; NULL stays NULL. */
static void *own(keel_options_copy *c, void *block)
{
    if (!block) return NULL;
    if (c->n == c->room) {
        const int room = c->room ? 2 * c->room : 32;
        void **more = keel_grow(c->owned, (size_t)room, sizeof *more);
        if (!more) {
            keel_free(block);
            return NULL;
        }
        c->owned = more;
        c->room = room;
    }
    return c->owned[c->n++] = block;
}

static keel_status text(keel_options_copy *c, const char **at)
{
    if (*at && !(*at = own(c, keel_strdup(*at)))) return KEEL_ENOMEM;
    return KEEL_OK;
}

static keel_status block(keel_options_copy *c, const void **at, int64_t n, size_t each)
{
    if (!*at || n <= 0) {
        *at = NULL;
        return KEEL_OK;
    }
    void *copy = own(c, keel_calloc((size_t)n, each));
    if (!copy) return KEEL_ENOMEM;
    memcpy(copy, *at, (size_t)n * each);
    *at = copy;
    return KEEL_OK;
}

static keel_status texts(keel_options_copy *c, const char *const **at, int64_t n)
{
    if (!*at || n <= 0) {
        *at = NULL;
        return KEEL_OK;
    }
    const char **copy = own(c, keel_calloc((size_t)n, sizeof *copy));
    if (!copy) return KEEL_ENOMEM;
    for (int64_t i = 0; i < n; i++) {
        copy[i] = (*at)[i];
        KEEL_TRY(text(c, &copy[i]));
    }
    *at = copy;
    return KEEL_OK;
}

static keel_status vocabularies(keel_options_copy *c, keel_dataset_options *o)
{
    if (!o->vocabularies || o->n_vocabulary <= 0) return KEEL_OK;
    keel_vocabulary *copy = own(c, keel_calloc((size_t)o->n_vocabulary, sizeof *copy));
    if (!copy) return KEEL_ENOMEM;
    for (int i = 0; i < o->n_vocabulary; i++) {
        copy[i] = o->vocabularies[i];
        KEEL_TRY(text(c, &copy[i].column));
        KEEL_TRY(texts(c, &copy[i].words, copy[i].n_words));
    }
    o->vocabularies = copy;
    return KEEL_OK;
}

/* Every member of keel_dataset_options that is a pointer. */
static keel_status copy_all(keel_options_copy *c, keel_dataset_options *o)
{
    o->note = NULL;
    o->note_context = NULL;
    KEEL_TRY(text(c, &o->label));
    KEEL_TRY(text(c, &o->sample_weight));
    KEEL_TRY(texts(c, &o->sample_weights, o->n_sample_weight));
    KEEL_TRY(texts(c, &o->inputs, o->n_input));
    KEEL_TRY(texts(c, &o->targets, o->n_target));
    KEEL_TRY(texts(c, &o->class_names, o->class_name_count));
    const int n_mode = o->n_target ? o->n_target : o->n_numbered;
    KEEL_TRY(block(c, (const void **)&o->target_modes, n_mode, sizeof *o->target_modes));
    KEEL_TRY(
        block(c, (const void **)&o->target_class_counts, n_mode, sizeof *o->target_class_counts));
    KEEL_TRY(block(c, (const void **)&o->labels, o->label_count, sizeof *o->labels));
    KEEL_TRY(text(c, &o->labels_path));
    KEEL_TRY(texts(c, &o->folders, o->folder_count));
    KEEL_TRY(texts(c, &o->features, o->n_feature));
    return vocabularies(c, o);
}

keel_status keel_options_copy_create(keel_options_copy **out, const keel_dataset_options *o)
{
    keel_options_copy *c = keel_calloc(1, sizeof *c);
    if (!c) return KEEL_ENOMEM;
    keel_status s = keel_dataset_options_read(&c->options, o);
    if (s >= 0) s = copy_all(c, &c->options);
    if (s < 0) {
        keel_options_copy_destroy(c);
        return s;
    }
    *out = c;
    return KEEL_OK;
}

void keel_options_copy_destroy(keel_options_copy *c)
{
    if (!c) return;
    for (int i = 0; i < c->n; i++) keel_free(c->owned[i]);
    keel_free(c->owned);
    keel_free(c);
}
