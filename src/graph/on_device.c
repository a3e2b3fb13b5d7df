/* See on_device.h. */
#include "graph/on_device.h"
#include "base/memory.h"
#include "base/round.h"

enum { ALIGN = 256 };

/* ---- made ------------------------------------------------------------------------------------ */

static void free_one(keel_on_device *x)
{
    if (!x) return;
    keel_free(x->input_at);
    keel_free(x->input_bytes);
    keel_free(x->output_at);
    keel_free(x->weight);
    keel_free(x->base);
    keel_free(x->has);
    keel_free(x->range);
    keel_free(x->summed);
    keel_free(x->row_sums_at);
    keel_free(x);
}

static keel_status too_many(const keel_program *p)
{
    return keel_fail(KEEL_ESHAPE, "a step of %lld rows is too large for a device",
                     (long long)p->options.max_rows);
}

static keel_status add_room(const keel_program *p, int64_t row_bytes, int64_t *at, int64_t *all)
{
    int64_t bytes;
    *at = *all;
    if (!keel_mul_i64(row_bytes, p->max_local_rows, &bytes) || bytes > INT64_MAX / 4 - *all)
        return too_many(p);
    *all += keel_round_up(bytes, ALIGN);
    return KEEL_OK;
}

static keel_status place(const keel_program *p, keel_on_device *x)
{
    const keel_graph *g = p->graph;
    for (int i = 0; i < g->n_input; i++) x->input_at[i] = -1;
    for (int v = 0; v < g->n_value; v++) {
        const keel_place *at = &p->value[v];
        if (at->kind != KEEL_PLACE_INPUT || x->input_at[at->at] >= 0) continue;
        x->input_bytes[at->at] = at->row_bytes;
        KEEL_TRY(add_room(p, at->row_bytes, &x->input_at[at->at], &x->inputs_bytes));
    }
    for (int i = 0; i < p->n_output; i++)
        KEEL_TRY(
            add_room(p, p->value[p->output[i]].row_bytes, &x->output_at[i], &x->outputs_bytes));
    return KEEL_OK;
}

keel_status keel_on_device_make(keel_program *p)
{
    const keel_graph *g = p->graph;
    for (int w = 0; w < p->lanes->n_worker; w++) {
        if (!p->lanes->device[w]) continue;
        keel_on_device *x = keel_calloc(1, sizeof *x);
        if (!x) return KEEL_ENOMEM;
        p->workspace[w].on_device = x;
        x->device = p->lanes->device[w];
        x->input_at = keel_calloc((size_t)g->n_input, sizeof *x->input_at);
        x->input_bytes = keel_calloc((size_t)g->n_input, sizeof *x->input_bytes);
        x->output_at = keel_calloc((size_t)p->n_output, sizeof *x->output_at);
        x->weight = keel_calloc((size_t)p->weight_at[g->n_node], sizeof *x->weight);
        x->base = keel_calloc((size_t)g->n_input, sizeof *x->base);
        x->has = keel_calloc((size_t)g->n_input, sizeof *x->has);
        if (!x->input_at || !x->input_bytes || !x->output_at || !x->weight || !x->base || !x->has)
            return KEEL_ENOMEM;
        KEEL_TRY(place(p, x));
        if (g->backward) KEEL_TRY(keel_on_device_divide(p, x));
        KEEL_TRY(keel_on_device_place_sums(p, x));
    }
    return KEEL_OK;
}

void keel_on_device_free(keel_program *p)
{
    for (int w = 0; p->workspace && w < p->lanes->n_worker; w++)
        free_one(p->workspace[w].on_device);
}

keel_status keel_on_device_settle(keel_program *p, int w)
{
    keel_workspace *s = &p->workspace[w];
    keel_on_device *x = s->on_device;
    const keel_store *store = p->store;
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    keel_arenas *a = p->arenas;
    KEEL_TRY(
        keel_arenas_take(a, w, KEEL_ARENA_INPUTS, x->inputs_bytes, KEEL_ROW_SLOTS, &x->inputs));
    KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_FACTS, 1, KEEL_FACTS_BYTES, &x->facts));
    KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_HOST_FACTS, 1, KEEL_FACTS_BYTES, &x->facts_sent));
    KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_WEIGHTS, store->n_master, element, &x->weights));
    KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_HOST_OUTPUTS, x->outputs_bytes, 1, &x->outputs));
    KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_HOST_MERGED, p->merged_doubles, sizeof(double),
                              &s->host.merged));
    KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_HOST_ROW_RECORDS, p->row_doubles, sizeof(double),
                              &s->host.row_records));
    if (p->graph->backward)
        KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_HOST_GRAD, p->gradient_elements, element,
                                  &s->host.grad));
    KEEL_TRY(keel_arenas_take(a, w, KEEL_ARENA_HOST_ROW_SUMS, x->sums_doubles, sizeof(double),
                              &x->row_sums));
    for (int i = 0; i < 2 && x->device->type->fold; i++)
        KEEL_TRY(keel_arenas_take(a, w,
                                  i ? KEEL_ARENA_DEVICE_RECORD_LAST : KEEL_ARENA_DEVICE_RECORD,
                                  p->record_doubles, sizeof(double), &x->record[i]));
    for (int i = 0; i < p->weight_at[p->graph->n_node]; i++)
        x->weight[i] = x->weights + ((const char *)p->weight[i] - store->master);
    s->weight = x->weight;
    x->seen = 0;
    return KEEL_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The rows of a worker are neighbours: it has one lane. */
static void rows_of(const keel_bound *b, int worker, int64_t *first, int64_t *rows)
{
    *first = *rows = 0;
    for (int i = 0; i < b->n_busy; i++)
        if (b->piece[i].worker == worker) {
            *first = b->piece[i].row;
            *rows = b->piece[i].rows;
        }
}

/* The same of a step of n rows that is not bound. */
static void rows_of_step(const keel_lanes *l, int64_t n, int worker, int64_t *first, int64_t *rows)
{
    keel_piece piece[KEEL_LANES_MAX];
    *first = *rows = 0;
    keel_cut(l, n, piece);
    for (int i = 0; i < l->n_part; i++)
        if (piece[i].worker == worker && piece[i].rows > 0) {
            *first = piece[i].row;
            *rows = piece[i].rows;
        }
}

/* Rows of one input go into a slot. */
static void send_rows(const keel_on_device *x, int input, int slot, const char *rows, int64_t bytes)
{
    const int64_t at = slot * x->inputs_bytes + x->input_at[input];
    x->device->type->copy_in(x->device, KEEL_COPY_IN_STREAM, x->inputs + at, rows, bytes);
}

static keel_ahead *ahead_of(const keel_program *p, int worker)
{
    return &p->arenas->ahead[worker];
}

bool keel_on_device_has_rows(const keel_program *p, int worker)
{
    const keel_ahead *a = ahead_of(p, worker);
    return a->batch && a->program == p && a->batch == p->given;
}

/* The next batch's rows, if it is known. The slot was that of the step before this one, and the
 * host has waited for the end of that. */
static void send_ahead(keel_program *p, int worker)
{
    const keel_coming *c = &p->coming;
    keel_on_device *x = p->workspace[worker].on_device;
    const int slot = (x->slot + 1) % KEEL_ROW_SLOTS;
    int64_t first, rows;
    rows_of_step(p->lanes, c->rows, worker, &first, &rows);
    if (rows > 0 && c->read) c->read(c->context, first, first + rows);
    for (int i = 0; i < p->graph->n_input; i++) {
        const int64_t bytes = x->input_bytes[i];
        x->has[i] = c->input[i] && x->input_at[i] >= 0;
        if (x->has[i] && rows > 0)
            send_rows(x, i, slot, (const char *)c->input[i] + first * bytes, rows * bytes);
    }
    if (rows > 0)
        x->device->type->record(x->device, KEEL_COPY_IN_STREAM, KEEL_EVENT_ROWS_THERE + slot);
    *ahead_of(p, worker) = (keel_ahead){ .program = p, .batch = c->batch, .slot = slot };
}

/* The rows of this step, unless they are there. */
static void begin_rows(keel_program *p, const keel_bound *b, int worker)
{
    keel_on_device *x = p->workspace[worker].on_device;
    keel_device *d = x->device;
    keel_ahead *a = ahead_of(p, worker);
    const bool there = keel_on_device_has_rows(p, worker);
    bool sends = false;
    int64_t first, rows;
    rows_of(b, worker, &first, &rows);
    x->slot = there ? a->slot : 0;
    a->batch = 0;
    for (int i = 0; i < p->graph->n_input; i++) {
        const int64_t bytes = x->input_bytes[i];
        const char *from = p->input[i];
        x->base[i] = NULL;
        if (!from || x->input_at[i] < 0) continue;
        x->base[i] = keel_on_device_base(x, i, x->slot, first);
        if (rows == 0 || (there && x->has[i])) continue;
        send_rows(x, i, x->slot, from + first * bytes, rows * bytes);
        sends = true;
    }
    if (!sends) return;
    d->type->record(d, KEEL_COPY_IN_STREAM, KEEL_EVENT_ROWS_THERE + x->slot);
    d->type->wait(d, KEEL_COMPUTE_STREAM, KEEL_EVENT_ROWS_THERE + x->slot);
}

/* A run has ended: the host may write where it has these rows of a batch. */
static void let_go(const keel_program *p, int worker, const void *const *input, int64_t first,
                   int64_t rows)
{
    const keel_on_device *x = p->workspace[worker].on_device;
    for (int i = 0; i < p->graph->n_input; i++) {
        const int64_t bytes = x->input_bytes[i];
        if (input[i] && x->input_at[i] >= 0)
            keel_device_touches(x->device, (const char *)input[i] + first * bytes, rows * bytes,
                                true);
    }
}

/* ---- in a run -------------------------------------------------------------------------------- */

static void send_facts(const keel_program *p, const keel_on_device *x)
{
    keel_facts_there *f = x->facts_sent;
    keel_device_touches(x->device, f, KEEL_FACTS_BYTES, true);
    f->facts = p->facts;
    for (int i = 0; i < p->facts.loss_seeds; i++) f->loss_seed[i] = p->facts.loss_seed[i];
    if (p->facts.loss_seed) f->facts.loss_seed = x->facts->loss_seed;
    x->device->type->copy_in(x->device, KEEL_COMPUTE_STREAM, x->facts, f, KEEL_FACTS_BYTES);
}

static void send_weights(const keel_on_device *x, const keel_store *store, int64_t first,
                         int64_t end)
{
    const int64_t element = (int64_t)keel_dtype_size(store->real);
    if (end > first)
        x->device->type->copy_in(x->device, KEEL_COMPUTE_STREAM, x->weights + first * element,
                                 store->master + first * element, (end - first) * element);
}

keel_status keel_on_device_begin(keel_program *p, const keel_bound *b, int worker)
{
    keel_on_device *x = p->workspace[worker].on_device;
    if (x->seen != p->store->moves) {
        send_weights(x, p->store, 0, p->store->resident_first);
        send_weights(x, p->store, p->store->resident_end, p->store->n_master);
    }
    x->seen = p->store->moves;
    x->sent = -1;
    x->out = x->came = 0;
    send_facts(p, x);
    begin_rows(p, b, worker);
    return keel_on_device_choose(p, b, worker);
}

keel_status keel_on_device_call(const keel_program *p, const keel_bound *b,
                                const keel_bound_call *c, int worker)
{
    keel_device *d = p->workspace[worker].on_device->device;
    const keel_dtype real = p->options.real;
    for (int i = 0; i < c->n_clear; i++)
        d->type->clear(d, c->add[i].to, c->add[i].count * (int64_t)keel_dtype_size(real));
    c->run(&c->call);
    if (c->fold.stack) KEEL_TRY(keel_on_device_fold(p, b, c, worker));
    for (int i = c->n_clear; i < c->n_add; i++)
        d->type->add(d, real, c->add[i].to, c->add[i].from, c->add[i].count);
    return KEEL_OK;
}

/* Rows of the next batch that are there are sent once the device has something to do: the host
 * waits for a copy from memory that is not page-locked. Those that the host must read come last. */
keel_status keel_on_device_segment(keel_program *p, const keel_bound *b, int worker, int segment)
{
    int64_t first, rows;
    if (segment == 0 && p->coming.batch && !p->coming.read) send_ahead(p, worker);
    rows_of(b, worker, &first, &rows);
    if (rows == 0 || segment + 1 == p->schedule.n_segment) return KEEL_OK;
    if (keel_on_device_within(p->workspace[worker].on_device,
                              b->workspace[worker].first[segment + 1]))
        return KEEL_OK;
    keel_on_device_send(p, b, worker, segment);
    return keel_on_device_send_records(p, b, worker, segment);
}

/* What a run leaves, behind its last call. False: nothing goes out behind that. */
static bool send_last(const keel_program *p, const keel_bound *b, int worker, int64_t rows)
{
    const keel_bound_workspace *w = &b->workspace[worker];
    const keel_workspace *s = &p->workspace[worker];
    const keel_on_device *x = s->on_device;
    keel_device *d = x->device;
    bool follows = keel_on_device_send(p, b, worker, p->schedule.n_segment - 1);
    for (int i = 0; i < p->n_output; i++) {
        const keel_place *at = &p->value[p->output[i]];
        if (at->kind == KEEL_PLACE_INPUT) continue;
        if (!follows) keel_on_device_follow(d, KEEL_EVENT_RUN_ENDS);
        follows = true;
        d->type->copy_out(d, KEEL_COPY_OUT_STREAM, x->outputs + x->output_at[i], s->rows + at->at,
                          rows * at->row_bytes);
    }
    return follows || (x->sent >= 0 && w->first[x->sent + 1] == w->n_call);
}

keel_status keel_on_device_end(keel_program *p, const keel_bound *b, int worker)
{
    keel_on_device *x = p->workspace[worker].on_device;
    keel_device *d = x->device;
    int64_t first, rows;
    rows_of(b, worker, &first, &rows);
    const bool follows = rows > 0 && send_last(p, b, worker, rows);
    if (p->coming.batch && p->coming.read) send_ahead(p, worker);
    if (ahead_of(p, worker)->batch)
        d->type->wait(d, follows ? KEEL_COPY_OUT_STREAM : KEEL_COMPUTE_STREAM,
                      KEEL_EVENT_ROWS_THERE + ahead_of(p, worker)->slot);
    x->waited_out = follows || x->sent >= 0;
    if (worker == 0 && p->meanwhile) p->meanwhile(p->meanwhile_for);
    keel_on_device_pass(p, b, worker);
    keel_status failed = KEEL_OK; /* what goes out last comes behind all calls */
    if (!follows) failed = keel_device_reach(d, KEEL_COMPUTE_STREAM);
    if (failed >= 0 && x->waited_out) failed = keel_device_reach(d, KEEL_COPY_OUT_STREAM);
    if (failed < 0 || p->failure[worker].status < 0) { /* who knows what has come? */
        ahead_of(p, worker)->batch = 0;
        x->seen = 0;
    }
    if (failed < 0) return failed;
    let_go(p, worker, p->input, first, rows);
    if (ahead_of(p, worker)->batch) {
        int64_t first_ahead, rows_ahead;
        rows_of_step(p->lanes, p->coming.rows, worker, &first_ahead, &rows_ahead);
        let_go(p, worker, p->coming.input, first_ahead, rows_ahead);
    }
    if (p->graph->backward) /* the owners of tiles are about to move them */
        keel_device_touches(d, p->store->master,
                            p->store->n_master * (int64_t)keel_dtype_size(p->store->real), true);
    if (rows == 0) return KEEL_OK;
    keel_on_device_read_gradients(p, b, worker);
    keel_on_device_fold_sums(p, b, worker);
    for (int i = 0; i < p->n_output; i++)
        keel_device_touches(d, x->outputs + x->output_at[i],
                            rows * p->value[p->output[i]].row_bytes, false);
    return KEEL_OK;
}

void keel_on_device_merged(const keel_workspace *w, const double *at, int64_t doubles)
{
    if (!w->on_device) return;
    keel_device *d = w->on_device->device;
    const int64_t bytes = doubles * (int64_t)sizeof *at;
    keel_device_touches(d, at, bytes, true);
    d->type->copy_in(d, KEEL_COMPUTE_STREAM, w->merged + (at - w->host.merged), at, bytes);
}
