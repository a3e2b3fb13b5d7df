/* See portion.h. */
#include "data/portion.h"
#include "base/clock.h"
#include "base/memory.h"
#include "data/stage.h"
#include "data/trail.h"

/* ---- elements -------------------------------------------------------------------------------- */

void keel_entry_drop(keel_entry *e)
{
    keel_element_release(e->out);
    e->out = NULL;
}

/* The text of a failure is a kilobyte, so only entries that have failed have room for one. */
void keel_entry_fail(keel_entry *e, const keel_spot *place)
{
    if (!e->trouble) e->trouble = keel_calloc(1, sizeof *e->trouble);
    if (!e->trouble) return;
    keel_failure_take(&e->trouble->failure, e->status);
    e->trouble->place = *place;
}

keel_status keel_entry_raise(const keel_entry *e, const keel_iter *it)
{
    const keel_trouble *t = e->trouble;
    it->run->place = t ? t->place : (keel_spot){ .from = it->dataset, .at = e->at };
    return t ? keel_failure_raise(&t->failure)
             : keel_fail(e->status, "an element failed, and there is no memory to say why");
}

void keel_entry_make(keel_entry *e, keel_iter *it, keel_make *make, keel_scratch *scratch)
{
    keel_trail *t = scratch->trail;
    t->failed_in = NULL;
    t->faults.n = e->faults.n = 0;
    const keel_data_origin *shown = keel_trail_show(t, it->shown);
    const keel_trail_mark before = keel_trail_enter(t, it->dataset->origin, e->at.index);
    e->status = make(it, e->at, e->in, &e->out, scratch);
    keel_trail_show(t, shown);
    keel_trail_leave(t, before);
    if (e->status >= 0) e->status = keel_faults_move(&e->faults, &t->faults);
    if (e->status >= 0) return;
    keel_spot place = e->in ? e->in->place : (keel_spot){ .from = it->dataset, .at = e->at };
    place.failed_in = t->failed_in ? t->failed_in : it->dataset->origin;
    place.failed_row = t->failed_row;
    keel_entry_fail(e, &place);
    keel_entry_drop(e);
}

void keel_entry_leave(keel_entry *e)
{
    keel_element_release(e->in);
    keel_free(e->trouble);
    e->in = NULL;
    e->trouble = NULL;
}

static void clear(keel_entry *e)
{
    keel_entry_drop(e);
    keel_entry_leave(e);
    keel_faults_free(&e->faults);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void run(keel_task *task, keel_scratch *scratch)
{
    keel_portion *const p = (keel_portion *)(void *)task;
    const double begin = p->timed ? keel_seconds() : 0;
    const keel_probe_mark m = keel_probe_resume(scratch->probe, p->it->dataset->origin);
    for (int i = p->first; i < p->end; i++) keel_entry_make(&p->at[i], p->it, p->make, scratch);
    keel_probe_leave(scratch->probe, m);
    if (p->timed) p->seconds = keel_seconds() - begin;
}

void keel_portion_init(keel_portion *p, keel_iter *it, keel_make *make, bool timed)
{
    *p = (keel_portion){
        .task = { .run = run, .work = it->work }, .timed = timed, .it = it, .make = make, .room = 1
    };
    p->at = &p->one;
}

void keel_portion_start(keel_portion *p, int first, int end)
{
    p->first = first;
    p->end = end;
    keel_pool_add(p->it->run->pool, &p->task);
}

static int64_t bytes_of(int room)
{
    return room * (int64_t)sizeof(keel_entry);
}

void keel_portion_clear(keel_portion *p)
{
    for (int i = 0; i < p->room; i++) clear(&p->at[i]);
    if (p->at == &p->one) return;
    keel_free(p->at);
    keel_account_give(p->it->run->account, bytes_of(p->room));
    p->at = &p->one;
    p->room = 1;
}

bool keel_run_has_room(const keel_run *run, int64_t n_bytes)
{
    const keel_account *a = run->account;
    return !a || !a->limit || keel_account_room(a) - a->reserve > n_bytes;
}

void keel_portion_reserve(keel_portion *p, int room)
{
    keel_account *a = p->it->run->account;
    if (room <= p->room || !keel_run_has_room(p->it->run, bytes_of(room))) return;
    if (!keel_account_try(a, bytes_of(room))) return;
    keel_entry *at = keel_calloc((size_t)room, sizeof *at);
    if (!at) {
        keel_account_give(a, bytes_of(room));
        return;
    }
    keel_portion_clear(p);
    p->at = at;
    p->room = room;
}
