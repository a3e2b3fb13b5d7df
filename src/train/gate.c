/* See gate.h. */
#include "train/gate.h"
#include "keel/checkpoint.h"
#include "train/checkpoint.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static keel_gate *list;

void keel_gate_enter(keel_gate *g, keel_trainer *t)
{
    pthread_mutex_init(&g->lock, NULL);
    g->trainer = t;
    pthread_mutex_lock(&list_lock);
    pthread_mutex_lock(&g->lock);
    g->next = list;
    list = g;
    pthread_mutex_unlock(&list_lock);
}

void keel_gate_leave(keel_gate *g)
{
    if (!g->trainer) return;
    pthread_mutex_unlock(&g->lock); /* whoever waits for it saves first */
    pthread_mutex_lock(&list_lock);
    for (keel_gate **p = &list; *p; p = &(*p)->next)
        if (*p == g) {
            *p = g->next;
            break;
        }
    pthread_mutex_unlock(&list_lock);
    g->trainer = NULL;
    pthread_mutex_destroy(&g->lock);
}

keel_status keel_gate_next(keel_gate *g, keel_feed *f, keel_batch *out)
{
    pthread_mutex_unlock(&g->lock);
    const keel_status s = keel_feed_next(f, out);
    pthread_mutex_lock(&g->lock);
    return s;
}

/* The list stays locked meanwhile, so that no gate in it can go away. */
keel_status keel_fit_save(const keel_model *m, const char *path)
{
    keel_snapshot *shot = NULL;
    keel_status s = KEEL_END;
    pthread_mutex_lock(&list_lock);
    for (keel_gate *g = list; g && s == KEEL_END; g = g->next) {
        if (g->trainer->model != m) continue;
        pthread_mutex_lock(&g->lock);
        s = keel_snapshot_create(&shot, m);
        if (s >= 0) s = keel_snapshot_take(shot, g->trainer);
        pthread_mutex_unlock(&g->lock);
    }
    pthread_mutex_unlock(&list_lock);
    if (shot) s = keel_snapshot_write(shot, NULL, path);
    keel_snapshot_destroy(shot);
    return s;
}
