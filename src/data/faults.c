/* See faults.h. */
#include "data/faults.h"
#include "base/memory.h"
#include "base/plural.h"
#include "data/quarantine.h"
#include "data/stage.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists ------------------------------------------------------------------------------------
 */

keel_status keel_faults_add(keel_faults *f, const keel_fault *one)
{
    if (f->n == f->room) {
        const int64_t room = f->room ? 2 * f->room : 4;
        keel_fault *at = keel_grow(f->at, (size_t)room, sizeof *at);
        if (!at) return KEEL_ENOMEM;
        f->at = at;
        f->room = room;
    }
    f->at[f->n++] = *one;
    return KEEL_OK;
}

keel_status keel_faults_move(keel_faults *to, keel_faults *from)
{
    keel_status s = KEEL_OK;
    for (int64_t i = 0; i < from->n && s >= 0; i++) s = keel_faults_add(to, &from->at[i]);
    from->n = 0;
    return s;
}

void keel_faults_number(keel_faults *f, int64_t order)
{
    for (int64_t i = f->n; i > 0 && f->at[i - 1].order < 0; i--) f->at[i - 1].order = order;
}

void keel_faults_free(keel_faults *f)
{
    keel_free(f->at);
    *f = (keel_faults){ 0 };
}

/* ---- budgets ----------------------------------------------------------------------------------
 */

int64_t keel_budget_allows(const keel_budget *b, int64_t rows, int64_t seen)
{
    enum { LEAST = 1000 };
    const int64_t most = b->most == KEEL_INT_NULL ? INT64_MAX : b->most;
    if (isnan(b->rate)) return most;
    const double n = (double)(rows >= 0 ? rows : seen < LEAST ? LEAST : seen);
    const double part = floor(b->rate * n * (1 + 1e-12)); /* 0.29 of 100 are 29 */
    return part < (double)most ? (int64_t)part : most;
}

struct keel_passed {
    pthread_mutex_t lock;
    keel_quarantine list;
    keel_row_set rows; /* all that were passed over */
    int64_t first_row;
    keel_failure first;
};

keel_status keel_passed_create(keel_passed **out, const keel_budget *b)
{
    if (b->most == KEEL_INT_NULL && isnan(b->rate))
        return keel_fail(KEEL_EARG, "give `most`, a number, or `rate`, a part of the elements");
    if (b->rate == 0) return keel_fail(KEEL_EARG, "a `rate` of 0 allows nothing: leave it out");
    keel_passed *p = keel_calloc(1, sizeof *p);
    if (!p) return KEEL_ENOMEM;
    pthread_mutex_init(&p->lock, NULL);
    p->list.fd = -1;
    const keel_status s = b->quarantine ? keel_quarantine_open(&p->list, b->quarantine) : KEEL_OK;
    if (s < 0) {
        keel_passed_destroy(p);
        return s;
    }
    *out = p;
    return KEEL_OK;
}

void keel_passed_destroy(keel_passed *p)
{
    if (!p) return;
    keel_quarantine_close(&p->list);
    keel_row_set_free(&p->rows);
    pthread_mutex_destroy(&p->lock);
    keel_free(p);
}

/* The dataset that a row was read from, and its number there. */
static const keel_data_origin *source_of(const keel_spot *p, int64_t *row)
{
    keel_position at = p->at;
    *row = -1;
    if (p->failed_in && !p->failed_in->applied) {
        *row = p->failed_row;
        return p->failed_in;
    }
    if (!p->from) return NULL;
    const keel_data_origin *o = keel_dataset_origin_at(p->from, &at);
    *row = at.index;
    return o;
}

void keel_passed_add(keel_passed *p, const keel_fault *f)
{
    keel_quarantined q = { .stage = f->stage->stage->type.name, .reason = f->failure.text };
    const keel_data_origin *o = source_of(&f->place, &q.row), *in = f->place.failed_in;
    if (in) q.stage = in->applied ? in->applied->stage->type.name : in->source->name;
    q.file = o ? keel_quarantine_file(o, q.row) : keel_dataset_name(f->stage->parent[0]);
    pthread_mutex_lock(&p->lock);
    if (!p->rows.n) {
        p->first = f->failure;
        p->first_row = q.row;
    }
    keel_row_set_add(&p->rows, q.file, q.row);
    keel_quarantine_add(&p->list, &q);
    pthread_mutex_unlock(&p->lock);
}

void keel_passed_note(keel_passed *p, const char *name, const char *one, const char *many,
                      char *text, size_t size)
{
    char first[32] = "", which[80]; /* of a stream it may have no number */
    pthread_mutex_lock(&p->lock);
    if (p->first_row >= 0) snprintf(first, sizeof first, " (%lld)", (long long)p->first_row);
    if (p->rows.n == 1)
        snprintf(which, sizeof which, "1 row%s could not be read%s", first, one);
    else
        snprintf(which, sizeof which, "%lld rows could not be read%s, the first%s",
                 (long long)p->rows.n, many, first);
    if (p->rows.n)
        snprintf(text, size, "%s: %s, because: %.100s%s%.60s", name, which, p->first.text,
                 p->list.failed.status < 0 ? "; " : "",
                 p->list.failed.status < 0 ? p->list.failed.text : "");
    pthread_mutex_unlock(&p->lock);
}

/* ---- the budgets of a run ---------------------------------------------------------------------
 */

static bool substitutes(const keel_applied *s)
{
    return s->stage == keel_stage_find("substitute");
}

/* Add the stages of a dataset to the list; NULL: count them. */
static int collect(const keel_dataset *d, keel_ledger_entry *at, int n)
{
    const keel_applied *s = d->origin->applied;
    for (int i = 0; s && i < s->n_parent; i++) n = collect(s->parent[i], at, n);
    if (!s || !substitutes(s)) return n;
    for (int i = 0; at && i < n; i++)
        if (at[i].stage == s) return n;
    if (at) at[n].stage = s;
    return n + 1;
}

keel_status keel_ledger_create(keel_ledger *out, const keel_dataset *d)
{
    const int n = collect(d, NULL, 0);
    keel_ledger l = { 0 };
    if (n && !(l.at = keel_calloc(2 * (size_t)n, sizeof *l.at))) return KEEL_ENOMEM;
    l.n = n ? collect(d, l.at, 0) : 0;
    *out = l;
    return KEEL_OK;
}

void keel_ledger_free(keel_ledger *l)
{
    keel_free(l->at);
    *l = (keel_ledger){ 0 };
}

static keel_status charge(keel_ledger *l, const keel_fault *f)
{
    const keel_applied *s = f->stage;
    const int64_t most = keel_budget_allows(s->args, s->parent[0]->rows, 0);
    for (int i = 0; i < l->n; i++) {
        keel_ledger_entry *e = &l->at[i];
        if (e->stage != s) continue;
        if (f->pass > e->pass) {
            e->pass = f->pass;
            e->n = 0;
        }
        if (e->n < most) {
            e->n++;
            return KEEL_OK;
        }
        const keel_status failed = keel_failure_raise(&f->failure);
        return keel_fail_within(
            failed, "substitute: the failure after %lld row%s of the pass that %s substituted",
            (long long)most, keel_s(most), most == 1 ? "was" : "were");
    }
    return KEEL_OK;
}

static int by_order(const void *a, const void *b)
{
    const int64_t x = ((const keel_fault *)a)->order, y = ((const keel_fault *)b)->order;
    return x < y ? -1 : x > y;
}

keel_status keel_ledger_charge(keel_ledger *l, keel_faults *f)
{
    keel_status s = KEEL_OK;
    if (!f->n) return KEEL_OK;
    qsort(f->at, (size_t)f->n, sizeof *f->at, by_order);
    memcpy(l->at + l->n, l->at, (size_t)l->n * sizeof *l->at);
    for (int64_t i = 0; i < f->n && s >= 0; i++) {
        s = charge(l, &f->at[i]);
        keel_passed_add(f->at[i].stage->made, &f->at[i]);
    }
    if (s < 0) memcpy(l->at, l->at + l->n, (size_t)l->n * sizeof *l->at);
    return s;
}
