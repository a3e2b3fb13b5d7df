/* See strategy.h and keel/train.h. */
#include "train/strategy.h"
#include "base/memory.h"
#include "device/discover.h"
#include "device/gpus.h"
#include "tensor/dtype.h"
#include <stdio.h>
#include <string.h>

keel_status keel_devices(keel_device_info *info, int max, int *count)
{
    keel_machine m;
    KEEL_TRY(keel_machine_find(&m));
    for (int i = 0; i < m.n_core && i < max; i++) {
        snprintf(info[i].name, sizeof info[i].name, "cpu:%d", i);
        snprintf(info[i].description, sizeof info[i].description, "one core of %s, %s", m.model,
                 m.instructions);
        info[i].memory = m.memory;
    }
    *count = m.n_core;
    keel_gpu gpu[KEEL_GPUS_MAX];
    const int n_gpu = keel_gpus_find(gpu);
    for (int i = 0; i < n_gpu; i++, ++*count) {
        if (*count >= max) continue;
        snprintf(info[*count].name, sizeof info[*count].name, "cuda:%d", i);
        snprintf(info[*count].description, sizeof info[*count].description, "%.95s", gpu[i].name);
        info[*count].memory = gpu[i].memory;
    }
    return KEEL_OK;
}

_Static_assert((int)KEEL_SHARDS_MAX <= (int)KEEL_LANES_MAX,
               "a step has no more shards than lanes can have");

keel_status keel_strategy_create(keel_strategy **out, const char *devices)
{
    keel_cores cores;
    KEEL_TRY(keel_cores_find(&cores));
    return keel_strategy_create_on(out, devices, &cores);
}

static keel_status create(keel_strategy **out, const keel_lanes *lanes)
{
    keel_status status = KEEL_ENOMEM;
    keel_strategy *s = keel_calloc(1, sizeof *s);
    if (!s) return status;
    s->lanes = *lanes;
    if (!(s->name = keel_calloc((size_t)s->lanes.n_lane, sizeof *s->name))) goto out;
    for (int i = 0; i < s->lanes.n_lane; i++) keel_lane_name(s->name[i], &s->lanes, i);
    if ((status = keel_team_create(&s->team, s->lanes.core, s->lanes.n_worker)) < 0) goto out;
    *out = s;
    return KEEL_OK;
out:
    keel_strategy_destroy(s);
    return status;
}

/* Lanes of GPUs, and of the cores that are named behind them; beside NULL: of none. */
static keel_status lanes_beside(keel_lanes *out, keel_device *const *device, int n,
                                const char *beside, const keel_cores *cores)
{
    keel_lanes of_cores;
    if (!beside) return keel_lanes_of_devices(out, device, n, cores);
    if (n == 0) return keel_lanes_parse_on(out, beside, cores);
    KEEL_TRY(keel_lanes_parse_on(&of_cores, beside, cores));
    return keel_lanes_beside(out, device, n, &of_cores, cores);
}

static keel_status create_on_gpus(keel_strategy **out, const char *devices, const keel_cores *cores)
{
    keel_device *gpu[KEEL_GPUS_MAX];
    keel_lanes lanes;
    const char *beside;
    int n = 0;
    KEEL_TRY(keel_gpus_open(devices, gpu, &n, &beside));
    keel_status s = lanes_beside(&lanes, gpu, n, beside, cores);
    if (s >= 0) s = create(out, &lanes);
    if (s >= 0) (*out)->n_opened = n;
    for (int i = 0; s < 0 && i < n; i++) gpu[i]->type->close(gpu[i]);
    return s;
}

keel_status keel_strategy_create_on(keel_strategy **out, const char *devices,
                                    const keel_cores *cores)
{
    keel_lanes lanes;
    if (keel_gpus_named(devices)) return create_on_gpus(out, devices, cores);
    KEEL_TRY(keel_lanes_parse_on(&lanes, devices, cores));
    KEEL_TRY(create(out, &lanes));
    (*out)->unnamed = !devices;
    return KEEL_OK;
}

keel_status keel_strategy_create_devices(keel_strategy **out, keel_device *const *device, int n)
{
    return keel_strategy_create_beside(out, device, n, NULL);
}

keel_status keel_strategy_create_beside(keel_strategy **out, keel_device *const *device, int n,
                                        const char *beside)
{
    keel_cores cores;
    KEEL_TRY(keel_cores_find(&cores));
    return keel_strategy_create_beside_on(out, device, n, beside, &cores);
}

keel_status keel_strategy_create_beside_on(keel_strategy **out, keel_device *const *device, int n,
                                           const char *beside, const keel_cores *cores)
{
    keel_lanes lanes;
    KEEL_TRY(lanes_beside(&lanes, device, n, beside, cores));
    return create(out, &lanes);
}

keel_status keel_strategy_create_lane(keel_strategy **out, const keel_strategy *s, int lane)
{
    const keel_lane *of = &s->lanes.lane[lane];
    keel_lanes one = { .n_lane = 1,
                       .n_part = of->n_core,
                       .n_worker = of->n_core,
                       .n_process = 1,
                       .all_lanes = 1,
                       .all_units = 1,
                       .all_workers = of->n_core,
                       .n_id = of->n_core,
                       .lane = { { .n_core = of->n_core } } };
    for (int c = 0; c < of->n_core; c++) {
        one.id[c] = s->lanes.id[of->first_id + c];
        const int w = s->lanes.part[of->first_part + c].worker;
        one.part[c] = (keel_lane_part){ .lane = 0, .worker = c };
        one.core[c] = s->lanes.core[w];
        one.device[c] = s->lanes.device[w];
    }
    KEEL_TRY(create(out, &one));
    (*out)->recompute = s->recompute;
    (*out)->micro_batch = s->micro_batch;
    return KEEL_OK;
}

/* ---- several processes ------------------------------------------------------------------------
 */

/* What the processes must know of each other, or have in common. */
typedef struct introduction {
    int32_t lanes, workers, devices; /* devices: whether some lanes are on devices */
    char version[24], instructions[24], computes_with[96];
    char kind[64]; /* of all its devices; empty: it has cores, or several kinds */
} introduction;

static keel_status compare(keel_comm *c, const introduction *all)
{
    char name[KEEL_COMM_NAME_MAX];
    for (int q = 1; q < c->group.count; q++) {
        const introduction *a = &all[0], *b = &all[q];
        if (strncmp(a->version, b->version, sizeof a->version) != 0)
            return keel_fail(KEEL_EARG,
                             "%s runs Keel %.24s, process 0 runs %.24s; install one "
                             "version everywhere",
                             keel_comm_name(c, q, name), b->version, a->version);
        const bool level = strncmp(a->instructions, b->instructions, sizeof a->instructions) != 0;
        if (level || strncmp(a->computes_with, b->computes_with, sizeof a->computes_with) != 0)
            return keel_fail(
                KEEL_EARG,
                "%s computes with %.96s, process 0 with %.96s, so they would not round alike; %s",
                keel_comm_name(c, q, name), b->computes_with, a->computes_with,
                level ? "--instructions common uses what all of them have"
                      : "install one version of oneDNN everywhere");
    }
    return KEEL_OK;
}

/* Empty: it has cores, or several kinds. */
static const char *kind_of(const keel_lanes *l)
{
    const keel_device *d = l->device[0];
    for (int w = 0; w < l->n_worker; w++)
        if (!d || !l->device[w] || strcmp(l->device[w]->kind, d->kind) != 0) return "";
    return d->kind;
}

static bool are_of_one_kind(const introduction *all, int n)
{
    bool one = all[0].kind[0];
    for (int q = 1; q < n; q++)
        one = one && strncmp(all[q].kind, all[0].kind, sizeof all[q].kind) == 0;
    return one;
}

bool keel_strategy_one_kind(const keel_strategy *s)
{
    return *kind_of(&s->lanes);
}

static keel_status introduce(keel_strategy *s, introduction *all)
{
    keel_comm *c = s->comm;
    introduction *own = &all[c->group.rank];
    int64_t lanes = 0, workers = 0;
    own->lanes = s->lanes.n_lane;
    own->workers = s->lanes.n_worker;
    own->devices = keel_lanes_device(&s->lanes) != NULL;
    snprintf(own->version, sizeof own->version, "%s", KEEL_VERSION);
    snprintf(own->instructions, sizeof own->instructions, "%s", keel_instructions());
    snprintf(own->computes_with, sizeof own->computes_with, "%s", keel_computes_with());
    snprintf(own->kind, sizeof own->kind, "%s", kind_of(&s->lanes));
    KEEL_TRY(keel_comm_all_gather_equal(c, all, sizeof *all));
    KEEL_TRY(compare(c, all));
    s->one_kind = are_of_one_kind(all, c->group.count);
    for (int q = 0; q < c->group.count; q++) {
        if (all[q].lanes < 1 || all[q].workers < 1 || all[q].lanes > KEEL_LANES_MAX)
            return keel_fail(KEEL_EREMOTE, "process %d has %d devices", q, all[q].lanes);
        s->lanes_before[q] = (int)lanes;
        lanes += all[q].lanes;
        workers += all[q].workers;
    }
    if (lanes > KEEL_ALL_LANES_MAX)
        return keel_fail(KEEL_EARG, "%lld devices in %d processes; %d are possible",
                         (long long)lanes, c->group.count, KEEL_ALL_LANES_MAX);
    s->lanes_before[c->group.count] = (int)lanes;
    for (int q = 0; q < c->group.count; q++)
        if (q != c->group.rank && all[q].devices) s->lanes.devices_elsewhere = true;
    keel_lanes_join(&s->lanes, c->group.rank, c->group.count, s->lanes_before, (int)workers);
    return KEEL_OK;
}

keel_status keel_strategy_create_group(keel_strategy **out, const char *devices,
                                       const keel_process_group *group)
{
    keel_cores cores;
    KEEL_TRY(keel_cores_find(&cores));
    return keel_strategy_create_group_on(out, devices, group, &cores);
}

/* The strategy of this process becomes that of all. Takes s and comm, also on failure; all learn of
 * one that could not open its devices. */
static keel_status join(keel_strategy **out, keel_strategy *s, keel_comm *comm, keel_status mine)
{
    const size_t n = (size_t)comm->group.count;
    introduction *all = NULL;
    keel_status status = keel_comm_agree(comm, mine, NULL, 0, NULL);
    if (status < 0) goto out;
    if (n > 1) {
        s->comm = comm;
        comm = NULL;
        s->lanes_before = keel_calloc(n + 1, sizeof *s->lanes_before);
        s->units_before = keel_calloc(n + 1, sizeof *s->units_before);
        all = keel_calloc(n, sizeof *all);
        status = s->lanes_before && s->units_before && all ? KEEL_OK : KEEL_ENOMEM;
        status = keel_comm_agree(s->comm, status, NULL, 0, NULL);
        if (status >= 0) status = introduce(s, all);
        if (status >= 0) status = keel_comm_measure(s->comm);
        if (status < 0) goto out;
    }
    *out = s;
    s = NULL;
out:
    keel_free(all);
    keel_strategy_destroy(s);
    keel_comm_destroy(comm);
    return status;
}

keel_status keel_strategy_create_group_on(keel_strategy **out, const char *devices,
                                          const keel_process_group *group, const keel_cores *cores)
{
    keel_strategy *s = NULL;
    keel_comm *comm = NULL;
    char text[KEEL_GPUS_TEXT_MAX], shared[KEEL_GPUS_TEXT_MAX] = "";
    KEEL_TRY(keel_comm_create(&comm, group));
    keel_status mine = KEEL_OK;
    if (group->count > 1) mine = keel_gpus_apart(comm, &devices, text, shared);
    if (mine >= 0) mine = keel_strategy_create_on(&s, devices, cores);
    if (s) memcpy(s->shared_gpu, shared, sizeof shared);
    return join(out, s, comm, mine);
}

keel_status keel_strategy_create_group_beside(keel_strategy **out, keel_device *const *device,
                                              int n, const char *beside,
                                              const keel_process_group *group)
{
    keel_strategy *s = NULL;
    keel_comm *comm = NULL;
    KEEL_TRY(keel_comm_create(&comm, group));
    const keel_status mine = keel_strategy_create_beside(&s, device, n, beside);
    return join(out, s, comm, mine);
}

keel_status keel_strategy_timeout(keel_strategy *s, double seconds)
{
    if (!(seconds > 0)) return keel_fail(KEEL_EARG, "a timeout of %g s: must be above 0", seconds);
    if (s->comm) s->comm->timeout = seconds;
    for (int w = 0; w < s->lanes.n_worker; w++)
        if (s->lanes.device[w]) s->lanes.device[w]->patience = seconds;
    return KEEL_OK;
}

int keel_strategy_processes(const keel_strategy *s)
{
    return s->lanes.n_process;
}

int keel_strategy_rank(const keel_strategy *s)
{
    return s->lanes.process;
}

void keel_strategy_destroy(keel_strategy *s)
{
    if (!s) return;
    keel_team_destroy(s->team);
    for (int i = 0; i < s->n_opened; i++) s->lanes.device[i]->type->close(s->lanes.device[i]);
    keel_comm_destroy(s->comm);
    keel_free(s->lanes_before);
    keel_free(s->units_before);
    keel_free(s->name);
    keel_free(s);
}

int keel_strategy_devices(const keel_strategy *s)
{
    return s->lanes.n_lane;
}

int keel_strategy_cores(const keel_strategy *s)
{
    return s->lanes.n_worker;
}

const char *keel_strategy_device_name(const keel_strategy *s, int device)
{
    return device >= 0 && device < s->lanes.n_lane ? s->name[device] : NULL;
}

int64_t keel_strategy_rows(const keel_strategy *s, int device, int64_t step_rows)
{
    keel_piece piece[KEEL_LANES_MAX];
    int64_t rows = 0;
    if (device < 0 || device >= s->lanes.n_lane || step_rows < 0) return 0;
    keel_cut(&s->lanes, step_rows, piece);
    for (int i = 0; i < s->lanes.n_part; i++)
        if (piece[i].lane == device) rows += piece[i].rows;
    return rows;
}

/* ---- how steps are summed ---------------------------------------------------------------------
 */

const char *keel_compress_name(keel_compress how)
{
    return how == KEEL_COMPRESS_BF16 ? "bf16" : "none";
}

static keel_status refuse_both(keel_compress how)
{
    return keel_fail(KEEL_EARG,
                     "compress %s and reproducible steps: gradients that are rounded on their way "
                     "depend on the number of processes; choose one of the two",
                     keel_compress_name(how));
}

keel_status keel_strategy_compress(keel_strategy *s, keel_compress how)
{
    if ((unsigned)how > KEEL_COMPRESS_BF16)
        return keel_fail(KEEL_EARG, "compress is %d; it must be KEEL_COMPRESS_NONE or _BF16",
                         (int)how);
    if (how && s->lanes.shards) return refuse_both(how);
    s->compress = how;
    return KEEL_OK;
}

keel_status keel_strategy_check_compress(const keel_strategy *s, keel_dtype real)
{
    if (!s->compress) return KEEL_OK;
    if (s->lanes.n_process == 1)
        return keel_fail(KEEL_EARG,
                         "compress %s is for several processes: of one, no gradients travel; leave "
                         "it out",
                         keel_compress_name(s->compress));
    if (real != KEEL_FLOAT32)
        return keel_fail(KEEL_EUNSUP,
                         "compress %s is for gradients of float32, and these are of %s; leave it "
                         "out",
                         keel_compress_name(s->compress), keel_dtype_name(real));
    return KEEL_OK;
}

keel_status keel_strategy_shard_optimizer(keel_strategy *s, bool shards)
{
    s->shard_optimizer = shards;
    return KEEL_OK;
}

void keel_strategy_recompute(keel_strategy *s, bool recompute)
{
    s->recompute = recompute;
}

keel_status keel_strategy_micro_batch(keel_strategy *s, int64_t rows)
{
    if (rows < 0 || rows > INT32_MAX)
        return keel_fail(KEEL_EARG,
                         "micro-batches of %lld rows: give 1 to 2147483647, or 0 for none",
                         (long long)rows);
    s->micro_batch = rows;
    return KEEL_OK;
}

bool keel_model_has_state(const keel_model *m)
{
    return !m->compiled.stateless;
}

keel_status keel_strategy_check_shards(const keel_strategy *s, const keel_model *m)
{
    if (m->compiled.stateless && !m->compiled.unread)
        return keel_fail(KEEL_EUNSUP,
                         "model '%s': the optimizer's state is not in this process: a fit that "
                         "sharded it has left it in process 0, or it was lost with a process; "
                         "save the model there and read it in all processes",
                         m->name);
    if (s->shard_optimizer && s->lanes.n_process == 1)
        return keel_fail(KEEL_EARG, "sharding the optimizer is for several processes: one has all "
                                    "of its state; leave it out");
    return KEEL_OK;
}

keel_status keel_strategy_reproducible(keel_strategy *s, int shards)
{
    if (shards < s->lanes.all_lanes || shards > KEEL_SHARDS_MAX)
        return keel_fail(
            KEEL_EARG, "%d shards for %d %s: each device needs at least one, and %d is the maximum",
            shards, s->lanes.all_lanes, s->lanes.all_lanes == 1 ? "device" : "devices",
            KEEL_SHARDS_MAX);
    if (s->compress) return refuse_both(s->compress);
    keel_status mine = keel_strategy_check_shares(&s->lanes, shards);
    if (s->comm && keel_lanes_unequal(&s->lanes)) /* so they are in all processes */
        mine = keel_comm_agree(s->comm, mine, NULL, 0, NULL);
    KEEL_TRY(mine);
    s->lanes.shards = shards;
    return KEEL_OK;
}

int keel_strategy_shards(const keel_strategy *s)
{
    return s->lanes.shards;
}
