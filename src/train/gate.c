/* See gate.h. */
#include "train/gate.h"
#include "keel/checkpoint.h"
#include "train/checkpoint.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static keel_gate *list;

void keel_gate_enter(keel_gate *g, keel_trainer *t)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK); /* it tells who holds it already */
    pthread_mutex_init(&g->lock, &kind);
    pthread_mutexattr_destroy(&kind);
    pthread_cond_init(&g->saved, NULL);
    g->trainer = t;
    g->savers = 0;
    pthread_mutex_lock(&g->lock);
    pthread_mutex_lock(&list_lock);
    g->next = list;
    list = g;
    pthread_mutex_unlock(&list_lock);
}

void keel_gate_leave(keel_gate *g)
{
    if (!g->trainer) return;
    pthread_mutex_unlock(&g->lock); /* whoever waits for it saves first */
    pthread_mutex_lock(&list_lock);
    while (g->savers) pthread_cond_wait(&g->saved, &list_lock);
    for (keel_gate **p = &list; *p; p = &(*p)->next)
        if (*p == g) {
            *p = g->next;
            break;
        }
    pthread_mutex_unlock(&list_lock);
    g->trainer = NULL;
    pthread_cond_destroy(&g->saved);
    pthread_mutex_destroy(&g->lock);
}

void keel_gate_open(keel_gate *g)
{
    if (g) pthread_mutex_unlock(&g->lock);
}

void keel_gate_close(keel_gate *g)
{
    if (g) pthread_mutex_lock(&g->lock);
}

keel_status keel_gate_next(keel_gate *g, keel_feed *f, keel_batch *out)
{
    keel_gate_open(g);
    const keel_status s = keel_feed_next(f, out);
    keel_gate_close(g);
    return s;
}

/* The gate of a model that trains, which stays until it is let go; NULL: there is none. The list is
 * not locked meanwhile, since a callback may hold the gate and fit another model. */
static keel_gate *hold(const keel_model *m)
{
    pthread_mutex_lock(&list_lock);
    keel_gate *g = list;
    while (g && g->trainer->model != m) g = g->next;
    if (g) g->savers++;
    pthread_mutex_unlock(&list_lock);
    return g;
}

static void let_go(keel_gate *g)
{
    pthread_mutex_lock(&list_lock);
    if (--g->savers == 0) pthread_cond_signal(&g->saved);
    pthread_mutex_unlock(&list_lock);
}

keel_status keel_fit_save(const keel_model *m, const char *path)
{
    keel_snapshot *shot = NULL;
    keel_status s;
    keel_gate *g = hold(m);
    if (!g) return KEEL_END;
    if (pthread_mutex_lock(&g->lock)) {
        s = keel_fail(KEEL_EARG, "keel_fit_save is for other threads than the one that trains; a "
                                 "callback saves by keel_model_save");
    } else {
        s = keel_snapshot_create(&shot, m);
        if (s >= 0) s = keel_snapshot_take(shot, g->trainer);
        pthread_mutex_unlock(&g->lock);
    }
    let_go(g);
    if (s >= 0) s = keel_snapshot_write(shot, NULL, path);
    keel_snapshot_destroy(shot);
    return s;
}
