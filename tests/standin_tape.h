/* A graph of the stand-in: what was enqueued, and all that it touches, in order. */
#ifndef KEEL_TESTS_STANDIN_TAPE_H
#define KEEL_TESTS_STANDIN_TAPE_H
#include <stdio.h>
#include <stdlib.h>
#include "standin_clocks.h"
#include "standin_work.h"

typedef enum standin_note_kind {
    STANDIN_NOTE_ENQUEUE,
    STANDIN_NOTE_TOUCH,
    STANDIN_NOTE_WORK
} standin_note_kind;

typedef struct standin_note {
    standin_note_kind kind;
    char who[CLOCKS_WHO];
    const void *at;
    int64_t bytes;
    bool writes;
    standin_work work;
} standin_note;

typedef struct standin_tape {
    standin_note *note;
    int n, room;
    struct standin_tape *next; /* of those that a lost device has left */
} standin_tape;

static standin_note *standin_tape_add(standin_tape *t, standin_note_kind kind)
{
    if (t->n == t->room) {
        t->room = 2 * t->room + 64;
        if (!(t->note = realloc(t->note, (size_t)t->room * sizeof *t->note))) abort();
    }
    t->note[t->n] = (standin_note){ .kind = kind };
    return &t->note[t->n++];
}

static void standin_tape_enqueue(standin_tape *t)
{
    standin_tape_add(t, STANDIN_NOTE_ENQUEUE);
}

static void standin_tape_touch(standin_tape *t, const char *who, const void *at, int64_t bytes,
                               bool writes)
{
    standin_note *x = standin_tape_add(t, STANDIN_NOTE_TOUCH);
    snprintf(x->who, sizeof x->who, "%s", who);
    x->at = at;
    x->bytes = bytes;
    x->writes = writes;
}

static void standin_tape_give(standin_tape *t, standin_work w)
{
    w.kept = true;
    standin_tape_add(t, STANDIN_NOTE_WORK)->work = w;
}

static void standin_tape_free(standin_tape *t)
{
    for (int i = 0; i < t->n; i++) {
        free(t->note[i].work.call);
        free(t->note[i].work.fold);
    }
    free(t->note);
    free(t);
}

#endif
