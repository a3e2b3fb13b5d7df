/* The memory of a feed: what it needs at least, slots that come and go, and the account that all of
 * it is taken from. */
#include "base/memory.h"
#include "data/feed_impl.h"
#include "tensor/dtype.h"
#include <unistd.h>

/* Sums and products that stop at INT64_MAX. */
static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t keel_feed_slot_bytes(const keel_feed *f)
{
    int64_t sum = 0;
    for (int k = 0; k < f->n_field; k++) sum = plus(sum, times((int64_t)f->bytes[k], f->max_rows));
    if (f->source->length && f->open)
        sum = plus(sum, times((int64_t)sizeof(keel_position), f->max_rows));
    return sum;
}

/* What a stream keeps between the source and the slots. */
static int64_t stream_bytes(const keel_feed *f)
{
    const keel_data_spec *p = f->spec;
    int64_t sum = 0;
    if (!f->source->next || p->shaped) return 0;
    for (int i = 0; i < p->n_field; i++) {
        const int64_t each = times(f->count[i], (int64_t)keel_dtype_size(p->field[i].dtype));
        sum = plus(sum, times(each, p->max_rows));
        if (f->o.end == KEEL_CARRY && f->o.batch_size)
            sum = plus(sum, times((int64_t)f->bytes[i], f->max_rows));
    }
    return sum;
}

/* What iterators over a dataset hold at the same time: the elements that a stage collects, and the
 * one that it makes of them. */
static int64_t iterator_bytes(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    int64_t sum = keel_dataset_element_size(d);
    if (!s && !d->origin->source->read) return times(2, sum); /* its yield, and the element */
    if (!s || s->by_index) return sum;
    for (int i = 0; i < s->n_parent; i++) sum = plus(sum, iterator_bytes(s->parent[i]));
    if (s->stage->holds)
        sum = plus(sum, times(s->stage->holds(s), keel_dataset_element_size(s->parent[0])));
    return sum;
}

static int64_t kept_bytes(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    const keel_source *source = d->origin->source;
    if (!s) return source->keeps ? source->keeps(d->origin->state) : 0;
    int64_t sum = s->stage->keeps ? s->stage->keeps(s) : 0;
    for (int i = 0; i < s->n_parent; i++) sum = plus(sum, kept_bytes(s->parent[i]));
    return sum;
}

static void charge(const keel_dataset *d, keel_account *a, bool on)
{
    const keel_applied *s = d->origin->applied;
    const keel_source *source = d->origin->source;
    if (s && s->stage->charge) s->stage->charge(s, a, on);
    if (!s && source->charge) source->charge(d->origin->state, a, on);
    for (int i = 0; s && i < s->n_parent; i++) charge(s->parent[i], a, on);
}

/* A row in a scratch buffer, each field at a cache line. */
static int64_t row_bytes(const keel_dataset *d)
{
    const int64_t lines = times(64, d->origin->spec.n_field);
    return plus(keel_element_size(&d->origin->spec, 0), lines);
}

/* What reading a row of a source takes; -1: not known, as it depends on each file. */
static int64_t source_bytes(const keel_dataset *d, const keel_dtype *want)
{
    const keel_source *source = d->origin->source;
    if (!source->needs) return source->read && !source->in_memory ? -1 : 0;
    return source->needs(d->origin->state, want);
}

/* The same, as far as it is known. */
static int64_t known_bytes(const keel_dataset *d, const keel_dtype *want)
{
    const keel_source *source = d->origin->source;
    const int64_t n = source_bytes(d, want);
    if (n >= 0) return n;
    return source->at_least ? source->at_least(d->origin->state, want) : 0;
}

/* The buffers of one thread that reads rows by index: a stage that computes rows keeps those of its
 * parents beside its own while it reads. want: the types of the fields; NULL: their own. */
static int64_t reading_bytes(const keel_dataset *d, const keel_dtype *want)
{
    const keel_applied *s = d->origin->applied;
    if (!s) return known_bytes(d, want);
    const bool computes = s->by_index && s->stage->read;
    int64_t sum = computes ? row_bytes(d) : 0;
    if (s->stage->needs) sum = plus(sum, s->stage->needs(s));
    for (int i = 0; i < s->n_parent; i++) {
        if (computes) sum = plus(sum, row_bytes(s->parent[i]));
        sum = plus(sum, reading_bytes(s->parent[i], s->by_index && s->stage->where ? want : NULL));
    }
    return sum;
}

const keel_dataset *keel_feed_unknown(const keel_dataset *d)
{
    const keel_applied *s = d->origin->applied;
    const keel_dataset *found = s || source_bytes(d, NULL) >= 0 ? NULL : d;
    for (int i = 0; s && i < s->n_parent && !found; i++) found = keel_feed_unknown(s->parent[i]);
    return found;
}

static bool has_source(const keel_dataset *d, const keel_data_origin *o)
{
    const keel_applied *s = d->origin->applied;
    bool has = d->origin == o;
    for (int i = 0; s && i < s->n_parent && !has; i++) has = has_source(s->parent[i], o);
    return has;
}

/* What comes and goes: elements of a stream, and buffers to read rows with. */
static int64_t moving_bytes(const keel_feed *f)
{
    const bool flows = f->source->next && f->dataset->origin->applied;
    return plus(reading_bytes(f->dataset, f->want), flows ? iterator_bytes(f->dataset) : 0);
}

int64_t keel_feed_need(const keel_feed *f)
{
    const int64_t fixed = plus(stream_bytes(f), kept_bytes(f->dataset));
    return plus(plus(times(2, keel_feed_slot_bytes(f)), fixed), moving_bytes(f));
}

int64_t keel_feed_reading(const keel_feed *f)
{
    return reading_bytes(f->dataset, f->want);
}

static keel_status too_little(const keel_feed *f, int64_t need)
{
    const int64_t batches = times(2, keel_feed_slot_bytes(f));
    return keel_fail(KEEL_EARG,
                     "%s: the input may hold %lld bytes (input_memory), but needs at least %lld: "
                     "two batches of %lld rows take %lld, and reading them %lld",
                     keel_dataset_name(f->dataset), (long long)f->o.account->limit, (long long)need,
                     (long long)f->max_rows, (long long)batches, (long long)(need - batches));
}

/* The two batches without which no step is made, where nobody has set a limit: what the machine
 * does not have would be handed out all the same, and whoever writes to it is killed. */
static keel_status check_machine(const keel_feed *f)
{
    const int64_t batches = times(2, keel_feed_slot_bytes(f));
    const int64_t machine = times(sysconf(_SC_PHYS_PAGES), sysconf(_SC_PAGE_SIZE));
    if (machine <= 0 || batches <= machine) return KEEL_OK;
    return keel_fail(KEEL_EARG,
                     "%s: two batches of %lld rows take %lld bytes, and this machine has %lld in "
                     "all: use smaller batches",
                     keel_dataset_name(f->dataset), (long long)f->max_rows, (long long)batches,
                     (long long)machine);
}

keel_status keel_feed_short(const keel_feed *f, const keel_data_origin *in)
{
    int64_t least = keel_feed_need(f);
    if (in && !in->applied && in->source->at_least && !has_source(f->dataset, in))
        least = plus(least, in->source->at_least(in->state, NULL)); /* made on the way */
    if (least <= f->o.account->limit) return KEEL_ENOMEM;
    return keel_fail_within(KEEL_ENOMEM, "the input needs at least %lld bytes", (long long)least);
}

/* A buffer for field k of all rows of a slot, which may be empty. */
static keel_status take_buffer(keel_feed *f, keel_slot *s, int k)
{
    const keel_row_memory *m = &f->o.memory;
    const bool asks = m->take && !s->own;
    size_t n;
    if (!keel_mul(f->bytes[k], (size_t)f->max_rows, &n))
        return keel_fail(KEEL_EARG, "%s: a batch of %lld rows is larger than the address space",
                         keel_dataset_name(f->dataset), (long long)f->max_rows);
    if (s->own) s->own->room[k] = n;
    if (n == 0) return KEEL_OK;
    if (asks && (s->at[k] = m->take(m->context, n))) {
        s->lent |= UINT64_C(1) << k;
        return KEEL_OK;
    }
    if (asks) f->refused += (int64_t)n;
    s->at[k] = keel_aligned_calloc(1, n);
    return s->at[k] ? KEEL_OK : KEEL_ENOMEM;
}

static void free_slot(const keel_feed *f, keel_slot *s)
{
    for (int k = 0; k < f->n_field; k++) {
        if (s->lent >> k & 1)
            f->o.memory.give(f->o.memory.context, s->at[k]);
        else
            keel_free(s->at[k]);
    }
    keel_faults_free(&s->faults);
    keel_free(s->own);
    keel_free(s->row);
    keel_account_give(f->o.account, s->taken_bytes);
    *s = (keel_slot){ 0 };
}

keel_status keel_feed_add_slot(keel_feed *f)
{
    const int64_t n_bytes = keel_feed_slot_bytes(f);
    keel_slot *s = &f->slots[f->n_slots];
    if (!keel_account_try(f->o.account, n_bytes)) return KEEL_ENOMEM;
    s->taken_bytes = n_bytes;
    keel_status r = keel_feed_own_lengths(f, s);
    if (r >= 0 && f->source->length && f->open &&
        !(s->row = keel_calloc((size_t)f->max_rows, sizeof(keel_position))))
        r = KEEL_ENOMEM;
    for (int k = 0; k < f->n_field && r >= 0; k++) r = take_buffer(f, s, k);
    if (r < 0) {
        free_slot(f, s);
        return r;
    }
    f->ring[f->n_slots++] = s;
    return KEEL_OK;
}

/* That caches leave free: what is needed to read, or a quarter. */
static int64_t reserve_of(const keel_account *a, int64_t moving)
{
    const int64_t quarter = keel_account_room(a) / 4;
    return moving > quarter ? moving : quarter;
}

keel_status keel_feed_take_memory(keel_feed *f)
{
    const int wanted = f->o.slots >= 2 ? f->o.slots : f->o.slots ? 2 : KEEL_SLOTS_DEFAULT;
    keel_account *a = f->o.account;
    const int64_t need = keel_feed_need(f), slot = keel_feed_slot_bytes(f);
    if (a && a->limit && keel_account_room(a) < need) return too_little(f, need);
    KEEL_TRY(check_machine(f));
    f->fixed = plus(stream_bytes(f), kept_bytes(f->dataset));
    if (!keel_account_try(a, f->fixed)) {
        f->fixed = 0;
        return too_little(f, need);
    }
    f->n_room = f->o.slots ? wanted : KEEL_SLOTS_TUNED;
    f->slots = keel_calloc((size_t)f->n_room, sizeof *f->slots);
    f->ring = keel_calloc((size_t)f->n_room, sizeof(keel_slot *));
    if (!f->slots || !f->ring) return KEEL_ENOMEM;
    const int64_t moving = moving_bytes(f), files = keel_feed_unknown(f->dataset) ? slot : 0;
    while (f->n_slots < wanted) {
        const bool enough = f->n_slots >= 2; /* fewer do, too */
        if (enough && keel_account_room(a) - moving < plus(slot, files)) break;
        const keel_status s = keel_feed_add_slot(f);
        if (s < 0) return s;
    }
    if (a) {
        const int64_t reserve = reserve_of(a, moving);
        if (a->reserve < reserve) a->reserve = reserve;
        charge(f->dataset, a, true);
    }
    return KEEL_OK;
}

/* With the lock held: give up batches ahead, the last ones first. A stream does not give its rows a
 * second time, so what it has begun stays. */
static void drop_slots(keel_feed *f, int64_t limit)
{
    if (f->source->next && f->begun) return;
    keel_feed_flush(f);
    while (f->n_slots > 2 && f->o.account->used > limit) free_slot(f, &f->slots[--f->n_slots]);
    for (int i = 0; i < f->n_slots; i++) f->ring[i] = &f->slots[i]; /* all are free */
}

void keel_feed_limit(keel_feed *f, int64_t limit)
{
    keel_account *a = f->o.account;
    const int64_t moving = moving_bytes(f);
    if (!a) return;
    pthread_mutex_lock(&f->lock);
    drop_slots(f, limit - moving);
    const int64_t kept = plus(a->used, moving);
    if (limit < kept) limit = kept;
    if (!a->limit || limit < a->limit) {
        a->limit = limit;
        a->reserve = reserve_of(a, moving);
    }
    pthread_mutex_unlock(&f->lock);
}

void keel_feed_give_memory(keel_feed *f)
{
    for (int i = 0; f->slots && i < f->n_slots; i++) free_slot(f, &f->slots[i]);
    keel_free(f->slots);
    keel_free(f->ring);
    if (!f->o.account) return;
    charge(f->dataset, f->o.account, false);
    keel_account_give(f->o.account, f->fixed);
    keel_account_drop(f->o.account);
}
