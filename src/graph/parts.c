/* See parts.h. A call is cut along the first dim of its output, where its op goes along it
 * (keel_op.goes): each part is a call of a node of its own, of so many places. Calls behind each
 * other share a phase if no part of one touches what another part of the other writes; so a turn
 * takes its places through all of them while they are in the cache, and threads meet only between
 * phases. What decides this is where the operands lie, so values that share memory need no rules of
 * their own. */
#include "graph/parts.h"
#include "base/memory.h"
#include "base/round.h"
#include "graph/bind.h"
#include "graph/choose.h"
#include "ops/reads.h"
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum {
    PLACES = 24,  /* a multiple of those that a product, or a turned matrix, takes at a time */
    COLUMNS = 32, /* likewise of a product's columns */
    VALUES = 8,   /* inputs and saved values */
    OPERANDS = 2 * VALUES + 2,
};

/* Seconds that calls must take to be worth a meeting: alone, and all of the program. */
static const double WORTH_CALL = 20e-6, WORTH_PROGRAM = 200e-6;

/* What a call reads or writes. */
typedef struct operand {
    const char *at;
    int64_t bytes;
    int64_t places; /* part i has the bytes of its places; 0: each part has all */
    bool writes, columns;
} operand;

/* What the parts of a call are. */
typedef enum how {
    BY_PLACES,  /* places of the output and of what goes along, with their gradients */
    BY_COLUMNS, /* of the gradient of a whole input */
    BY_TURNING, /* places of the output, which are columns of the only input */
} how;

/* A node of some places, and its kernel. */
typedef struct form {
    keel_node node; /* of no outputs: the form is not there */
    keel_spec *in;
    keel_run run;
    int64_t scratch;
} form;

typedef struct patch {
    const void **pointer, *const *from;
    int64_t offset;
} patch;

/* A call of the program, or a merge before the calls of a segment, as each turn of a phase has it.
 */
typedef struct work {
    int segment; /* >= 0: its records are merged */
    const keel_bound_call *call;
    how by;
    int n_part;      /* 0: the call is made as it is */
    form form[2];    /* of all parts but the last, and of that if it is smaller */
    keel_call *part; /* [n_part] */
    void **pointers;
    int n_operand;
    operand operand[OPERANDS];
    int64_t scratch_at; /* in that of a place */
} work;

typedef struct phase {
    int first, end; /* works */
    int64_t scratch;
} phase;

struct keel_parts {
    keel_program *p;
    const keel_bound *b;
    int n_work, n_phase, n_patch, places, most; /* most: works that there may be */
    work *work;
    phase *phase;
    int *turn; /* [n_phase] */
    patch *patch;
    int64_t scratch_bytes; /* of a place */
    char **scratch;        /* [places] */
    bool *ready;           /* [places][n_work] this place has run a part of it in this run */
    _Atomic bool failed;
};

/* ---- what a call touches --------------------------------------------------------------------- */

static int64_t size_of(const keel_spec *s)
{
    return keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype);
}

static void touch(work *w, const void *at, int64_t bytes, int64_t places, bool writes)
{
    if (at) w->operand[w->n_operand++] = (operand){ at, bytes, places, writes, false };
}

static int64_t places_of(const keel_node *n)
{
    return n->out[0].shape.dim[0];
}

static int64_t input_places(const keel_node *n, int k)
{
    return n->op->goes(n, k) == KEEL_GOES_ALONG ? places_of(n) : 0;
}

/* Whether the work makes the gradient of input k. */
static bool gives(const work *w, int k)
{
    const keel_call *c = &w->call->call;
    const bool along = c->node->op->goes(c->node, k) == KEEL_GOES_ALONG;
    return w->call->pass == KEEL_BACKWARD && c->in_grad[k] && along == (w->by == BY_PLACES);
}

static void find_operands(work *w)
{
    const keel_call *c = &w->call->call;
    const keel_node *n = c->node;
    const bool backward = w->call->pass == KEEL_BACKWARD;
    const unsigned reads = keel_pass_reads(n, w->call->pass);
    const int64_t all = w->by == BY_COLUMNS ? 0 : places_of(n);
    w->n_operand = 0;
    for (int k = 0; k < n->n_in; k++)
        if (keel_reads_in(reads, k))
            touch(w, c->in[k], size_of(&n->in[k]), all ? input_places(n, k) : 0, false);
    if (!backward || keel_reads_out(reads, 0))
        touch(w, c->out[0], size_of(&n->out[0]), all, !backward);
    for (int k = 0; k < n->n_saved; k++) touch(w, c->saved[k], size_of(&n->saved[k]), all, true);
    if (!backward) return;
    touch(w, c->out_grad[0], size_of(&n->out[0]), all, false);
    for (int k = 0; k < n->n_in; k++) {
        if (!gives(w, k)) continue;
        touch(w, c->in_grad[k], size_of(&n->in[k]), all ? input_places(n, k) : 0, true);
        w->operand[w->n_operand - 1].columns = w->by != BY_PLACES;
    }
}

/* Whether a part may touch what another part writes. */
static bool collide(const operand *a, const operand *b)
{
    if (!(a->writes || b->writes)) return false;
    if (a->at + a->bytes <= b->at || b->at + b->bytes <= a->at) return false;
    return a->columns || b->columns || a->places == 0 || a->places != b->places || a->at != b->at ||
           a->bytes != b->bytes;
}

static bool works_collide(const work *a, const work *b)
{
    for (int i = 0; i < a->n_operand; i++)
        for (int k = 0; k < b->n_operand; k++)
            if (!(a == b && i == k) && collide(&a->operand[i], &b->operand[k])) return true;
    return false;
}

/* ---- what can be cut ------------------------------------------------------------------------- */

static bool turns(const keel_node *n)
{
    return n->n_in == 1 && n->op->columns && n->op->goes(n, 0) == KEEL_GOES_WHOLE;
}

static bool can_cut(const keel_bound_call *bc)
{
    const keel_node *n = bc->call.node;
    if (!n->op->goes || n->n_out != 1 || n->n_weight || n->partial || n->partial_backward ||
        n->sums || n->held != n->real || n->n_in + n->n_saved > VALUES ||
        bc->pass > KEEL_BACKWARD || bc->n_add || bc->staged || bc->call.rows != 1)
        return false;
    if (n->out[0].shape.rank == 0) return false;
    const int64_t all = places_of(n);
    bool along = false;
    for (int k = 0; k < n->n_in; k++) {
        const keel_going goes = n->op->goes(n, k);
        if (goes == KEEL_GOES_NOT) return false;
        if (goes == KEEL_GOES_ALONG && n->in[k].shape.dim[0] != all) return false;
        along = along || goes == KEEL_GOES_ALONG;
    }
    for (int k = 0; k < n->n_saved; k++)
        if (n->saved[k].shape.rank == 0 || n->saved[k].shape.dim[0] != all) return false;
    return along || turns(n);
}

/* Roughly, on one core. */
static double seconds_of(const keel_bound_call *bc)
{
    const double flops_a_second = 50e9, bytes_a_second = 10e9, costly = 1e-9;
    const keel_node *n = bc->call.node;
    const bool backward = bc->pass == KEEL_BACKWARD;
    double bytes = 0, flops = 0, elements = 0;
    for (int k = 0; k < n->n_in; k++) bytes += (double)size_of(&n->in[k]);
    for (int k = 0; k < n->n_out; k++) {
        bytes += (double)size_of(&n->out[k]);
        elements += (double)keel_row_count(&n->out[k]);
    }
    if (n->op->flops)
        flops = backward && n->op->backward_flops ? n->op->backward_flops(n) : n->op->flops(n);
    return flops / flops_a_second + bytes / bytes_a_second +
           (n->op->costly ? elements * costly : 0);
}

/* ---- parts of a call ------------------------------------------------------------------------- */

static keel_status make_form(const keel_parts *x, const work *w, int64_t places, form *f)
{
    const keel_node *n = w->call->call.node;
    f->node = *n;
    f->node.n_out = f->node.n_saved = 0;
    f->node.out = f->node.saved = NULL;
    f->in = keel_calloc((size_t)n->n_in, sizeof *f->in);
    if (!f->in) return KEEL_ENOMEM;
    for (int k = 0; k < n->n_in; k++) {
        f->in[k] = n->in[k];
        if (input_places(n, k)) f->in[k].shape.dim[0] = places;
    }
    f->node.in = f->in;
    KEEL_TRY(keel_node_infer(&f->node));
    keel_choice c = { .node = &f->node,
                      .pass = w->call->pass,
                      .rows = 1,
                      .in_adds = w->call->pass == KEEL_BACKWARD && w->call->call.in_adds[0] };
    KEEL_TRY(keel_choose_kernel(&x->p->options, &c));
    assert(!c.plan); /* threads would share it */
    f->run = c.kernel ? c.run : keel_reference_of(n->op, c.pass, n->real == KEEL_FLOAT64);
    f->scratch = c.kernel ? c.scratch : f->node.scratch;
    return KEEL_OK;
}

static void free_form(form *f)
{
    keel_node_clear(&f->node);
    keel_free(f->in);
}

static const void *moved(const void *at, int64_t bytes)
{
    return at ? (const char *)at + bytes : NULL;
}

/* A pointer to the places of an input; one into the batch is set before each run. */
static void point_in(keel_parts *x, const work *w, keel_call *c, int k, int64_t offset)
{
    const void *const *from = &w->call->call.in[k];
    const keel_bound_workspace *s = &x->b->workspace[0];
    c->in[k] = moved(*from, offset);
    for (int i = 0; i < s->n_patch; i++)
        if (s->patch[i].pointer == from)
            x->patch[x->n_patch++] = (patch){ &c->in[k], from, offset };
}

/* Bytes from the beginning of a value to its place `first`. */
static int64_t offset_of(const keel_spec *s, int64_t first)
{
    return size_of(s) / s->shape.dim[0] * first;
}

static void point(keel_parts *x, const work *w, keel_call *c, void **next, int64_t first)
{
    const keel_call *of = &w->call->call;
    const keel_node *n = of->node;
    c->in = (const void **)next;
    c->in_grad = next + n->n_in;
    c->out = next + 2 * n->n_in;
    c->out_grad = (const void **)c->out + 1;
    c->saved = c->out + 2;
    for (int k = 0; k < n->n_in; k++) {
        const int64_t offset = input_places(n, k) ? offset_of(&n->in[k], first) : 0;
        point_in(x, w, c, k, offset);
        c->in_grad[k] = gives(w, k) ? (char *)of->in_grad[k] + offset : NULL;
    }
    const int64_t offset = offset_of(&n->out[0], first);
    c->out[0] = (void *)moved(of->out[0], offset);
    c->out_grad[0] = moved(of->out_grad[0], offset);
    for (int k = 0; k < n->n_saved; k++)
        c->saved[k] = (void *)moved(of->saved[k], offset_of(&n->saved[k], first));
}

/* `count` parts of `size` places, or columns, of which the last may have fewer. One part has all.
 */
static keel_status make_parts(keel_parts *x, work *w, int64_t all, int64_t size, int count)
{
    const keel_call *of = &w->call->call;
    const keel_node *n = of->node;
    const size_t pointers = 2 * (size_t)n->n_in + 2 + (size_t)n->n_saved;
    const int64_t last = all - (count - 1) * size;
    const bool by_places = w->by == BY_PLACES && count > 1;
    KEEL_TRY(make_form(x, w, by_places ? size : places_of(n), &w->form[0]));
    if (by_places && last < size) KEEL_TRY(make_form(x, w, last, &w->form[1]));
    w->part = keel_calloc((size_t)count, sizeof *w->part);
    w->pointers = keel_calloc((size_t)count * pointers, sizeof *w->pointers);
    void *patches = keel_grow(x->patch, (size_t)(x->n_patch + count * n->n_in), sizeof *x->patch);
    if (patches) x->patch = patches;
    if (!w->part || !w->pointers || !patches) return KEEL_ENOMEM;
    for (int i = 0; i < count; i++) {
        const bool small = by_places && i == count - 1 && last < size;
        keel_call *c = &w->part[i];
        *c = *of;
        c->node = &w->form[small].node;
        c->plan = NULL;
        point(x, w, c, w->pointers + (size_t)i * pointers, by_places ? i * size : 0);
        if (w->by != BY_PLACES && count > 1)
            c->columns = (keel_columns){ i * size, i == count - 1 ? last : size };
    }
    w->n_part = count;
    return KEEL_OK;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static int64_t size_for(int64_t all, int64_t unit)
{
    return keel_round_up(keel_div_up(all, KEEL_PARTS_MOST), unit);
}

static int turns_of(const keel_parts *x)
{
    return x->n_phase > 0 ? x->turn[x->n_phase - 1] : 0;
}

/* Whether the work, of so many parts, may go with the last phase. */
static bool joins(const keel_parts *x, const work *w, int parts)
{
    if (x->n_phase == 0) return false;
    const phase *last = &x->phase[x->n_phase - 1];
    if (!x->work[last->first].n_part) return !parts;
    if (turns_of(x) != parts) return false;
    for (int i = last->first; i < last->end; i++)
        if (works_collide(&x->work[i], w)) return false;
    return true;
}

/* Puts the work that was begun behind the others. */
static void put(keel_parts *x, bool joined)
{
    work *w = &x->work[x->n_work];
    if (!joined) {
        x->turn[x->n_phase] = w->n_part ? w->n_part : 1;
        x->phase[x->n_phase++] = (phase){ .first = x->n_work };
    }
    phase *last = &x->phase[x->n_phase - 1];
    last->end = ++x->n_work;
    w->scratch_at = last->scratch;
    last->scratch += keel_round_up(
        w->form[0].scratch > w->form[1].scratch ? w->form[0].scratch : w->form[1].scratch, 64);
    if (last->scratch > x->scratch_bytes) x->scratch_bytes = last->scratch;
}

static void put_whole(keel_parts *x, int segment, const keel_bound_call *call)
{
    work *w = &x->work[x->n_work];
    *w = (work){ .segment = segment, .call = call };
    put(x, joins(x, w, 0));
}

/* One call that makes some gradients of one that can be cut, of all places. */
static keel_status put_single(keel_parts *x, const keel_bound_call *bc, how by)
{
    work *w = &x->work[x->n_work];
    *w = (work){ .segment = -1, .call = bc, .by = by };
    KEEL_TRY(make_parts(x, w, 1, 1, 1));
    w->n_part = 0;
    put(x, joins(x, w, 0));
    return KEEL_OK;
}

/* Parts of a call. *done: false: nothing was put, since it is not worth it or not possible. */
static keel_status put_cut(keel_parts *x, const keel_bound_call *bc, how by, bool *done)
{
    work *w = &x->work[x->n_work];
    const keel_node *n = bc->call.node;
    *w = (work){ .segment = -1, .call = bc, .by = by };
    find_operands(w);
    const bool columns = by == BY_COLUMNS;
    const int64_t all = columns ? n->in[1].shape.dim[n->in[1].shape.rank - 1] : places_of(n);
    const int64_t size = size_for(all, columns ? COLUMNS : PLACES);
    const int parts = (int)keel_div_up(all, size);
    const bool joined = joins(x, w, parts);
    *done = parts > 1 && !works_collide(w, w) && (joined || seconds_of(bc) >= WORTH_CALL);
    if (!*done) return KEEL_OK;
    KEEL_TRY(make_parts(x, w, all, size, parts));
    put(x, joined);
    return KEEL_OK;
}

static bool wants(const keel_bound_call *bc, keel_going goes)
{
    const keel_call *c = &bc->call;
    for (int k = 0; k < c->node->n_in; k++)
        if (c->in_grad[k] && c->node->op->goes(c->node, k) == goes) return true;
    return false;
}

static keel_status put_gradients(keel_parts *x, const keel_bound_call *bc, how by)
{
    bool done = by == BY_PLACES || bc->call.node->op->columns;
    if (done) KEEL_TRY(put_cut(x, bc, by, &done));
    return done ? KEEL_OK : put_single(x, bc, by);
}

/* Gradients of inputs that go along may be written over what those of the others are made of. */
static bool places_are_last(const keel_bound_call *bc)
{
    work places = { .call = bc, .by = BY_PLACES }, columns = { .call = bc, .by = BY_COLUMNS };
    find_operands(&places);
    find_operands(&columns);
    return works_collide(&places, &columns);
}

static keel_status put_both(keel_parts *x, const keel_bound_call *bc)
{
    const bool both = wants(bc, KEEL_GOES_ALONG), last = both && places_are_last(bc);
    if (both && !last) KEEL_TRY(put_gradients(x, bc, BY_PLACES));
    KEEL_TRY(put_gradients(x, bc, BY_COLUMNS));
    return last ? put_gradients(x, bc, BY_PLACES) : KEEL_OK;
}

static keel_status put_call(keel_parts *x, const keel_bound_call *bc)
{
    bool done = can_cut(bc);
    const how by = done && turns(bc->call.node) ? BY_TURNING : BY_PLACES;
    if (done && by == BY_PLACES && bc->pass == KEEL_BACKWARD && wants(bc, KEEL_GOES_WHOLE)) {
        if (seconds_of(bc) >= WORTH_CALL) return put_both(x, bc);
        done = false;
    }
    if (done) KEEL_TRY(put_cut(x, bc, by, &done));
    if (!done) put_whole(x, -1, bc);
    return KEEL_OK;
}

static keel_status put_all(keel_parts *x)
{
    const keel_bound_workspace *s = &x->b->workspace[0];
    double seconds = 0;
    for (int i = 0; i < s->n_call; i++) seconds += seconds_of(&s->call[i]);
    for (int g = 0; g < x->p->schedule.n_segment; g++) {
        if (x->p->schedule.segment[g].merge >= 0) put_whole(x, g, NULL);
        for (int i = s->first[g]; i < s->first[g + 1]; i++)
            if (seconds < WORTH_PROGRAM)
                put_whole(x, -1, &s->call[i]);
            else
                KEEL_TRY(put_call(x, &s->call[i]));
    }
    return KEEL_OK;
}

static keel_status make(keel_parts *x)
{
    const size_t most = (size_t)x->most;
    x->work = keel_calloc(most, sizeof *x->work);
    x->phase = keel_calloc(most, sizeof *x->phase);
    x->turn = keel_calloc(most, sizeof *x->turn);
    x->scratch = keel_calloc((size_t)x->places, sizeof *x->scratch);
    if (!x->work || !x->phase || !x->turn || !x->scratch) return KEEL_ENOMEM;
    KEEL_TRY(put_all(x));
    for (int i = 0; i < x->places && x->scratch_bytes > 0; i++)
        if (!(x->scratch[i] = keel_aligned_calloc((size_t)x->scratch_bytes, 1))) return KEEL_ENOMEM;
    x->ready = keel_calloc((size_t)x->places * most, sizeof *x->ready);
    return x->ready ? KEEL_OK : KEEL_ENOMEM;
}

keel_status keel_parts_create(keel_parts **out, keel_program *p, const keel_bound *b, int places)
{
    keel_parts *x = keel_calloc(1, sizeof *x);
    if (!x) return KEEL_ENOMEM;
    x->p = p;
    x->b = b;
    x->places = places < KEEL_PARTS_MOST ? places : KEEL_PARTS_MOST;
    x->most = 2 * b->workspace[0].n_call + p->schedule.n_segment + 1;
    const keel_status s = make(x);
    if (s < 0) {
        keel_parts_destroy(x);
        return s;
    }
    *out = x;
    return KEEL_OK;
}

void keel_parts_destroy(keel_parts *x)
{
    if (!x) return;
    for (int i = 0; x->work && i < x->most; i++) {
        work *w = &x->work[i];
        for (int k = 0; k < 2; k++) free_form(&w->form[k]);
        keel_free(w->part);
        keel_free(w->pointers);
    }
    for (int i = 0; x->scratch && i < x->places; i++) keel_free(x->scratch[i]);
    keel_free(x->scratch);
    keel_free(x->ready);
    keel_free(x->patch);
    keel_free(x->turn);
    keel_free(x->phase);
    keel_free(x->work);
    keel_free(x);
}

/* ---- in a run -------------------------------------------------------------------------------- */

const int *keel_parts_turns(const keel_parts *x, int *n_phase)
{
    *n_phase = x->n_phase;
    return x->turn;
}

int64_t keel_parts_bytes(const keel_parts *x)
{
    return x->places * x->scratch_bytes;
}

void keel_parts_begin(keel_parts *x)
{
    keel_program_begin(x->p, x->b, 0);
    for (int i = 0; i < x->n_patch; i++)
        *x->patch[i].pointer = moved(*x->patch[i].from, x->patch[i].offset);
    memset(x->ready, 0, (size_t)x->places * (size_t)x->n_work * sizeof *x->ready);
    atomic_store(&x->failed, false);
}

static void run_part(keel_parts *x, const work *w, int turn, int place)
{
    bool *ready = &x->ready[place * x->n_work + (int)(w - x->work)];
    keel_call c = w->part[turn];
    c.scratch = x->scratch[place] ? x->scratch[place] + w->scratch_at : NULL;
    c.scratch_ready = *ready;
    *ready = true;
    (c.node == &w->form[1].node ? &w->form[1] : &w->form[0])->run(&c);
}

static void run_work(keel_parts *x, const work *w, int turn, int place)
{
    if (w->part)
        run_part(x, w, turn, place);
    else if (w->call)
        keel_program_call(x->p, x->b, w->call, 0);
    else
        keel_program_merge(x->p, x->b, w->segment, 0);
}

void keel_parts_run(keel_parts *x, int number, int turn, int place)
{
    for (int i = x->phase[number].first; i < x->phase[number].end; i++)
        if (!atomic_load(&x->failed)) run_work(x, &x->work[i], turn, place);
    const keel_status s = keel_call_status_take();
    if (s < 0 && !atomic_exchange(&x->failed, true)) keel_failure_take(&x->p->failure[0], s);
}
