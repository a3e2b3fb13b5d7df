/* See strategy.h and keel/train.h. */
#include "train/strategy.h"
#include "base/memory.h"
#include "device/discover.h"
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

keel_status keel_strategy_create_on(keel_strategy **out, const char *devices,
                                    const keel_cores *cores)
{
    keel_status status = KEEL_ENOMEM;
    keel_strategy *s = keel_calloc(1, sizeof *s);
    if (!s) return status;
    if ((status = keel_lanes_parse_on(&s->lanes, devices, cores)) < 0) goto out;
    status = KEEL_ENOMEM;
    if (!(s->name = keel_calloc((size_t)s->lanes.n_lane, sizeof *s->name))) goto out;
    for (int i = 0; i < s->lanes.n_lane; i++) keel_lane_name(s->name[i], &s->lanes.lane[i]);
    if ((status = keel_team_create(&s->team, s->lanes.core, s->lanes.n_worker)) < 0) goto out;
    *out = s;
    return KEEL_OK;
out:
    keel_strategy_destroy(s);
    return status;
}

/* ---- several processes ------------------------------------------------------------------------
 */

/* What the processes must know of each other, or have in common. */
typedef struct introduction {
    int32_t lanes, workers;
    char version[24], instructions[24], computes_with[96];
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
        if (strncmp(a->instructions, b->instructions, sizeof a->instructions) != 0)
            return keel_fail(
                KEEL_EARG,
                "%s computes with %.96s, process 0 with %.96s, so they would not round "
                "alike; --instructions common uses what all of them have",
                keel_comm_name(c, q, name), b->computes_with, a->computes_with);
        if (strncmp(a->computes_with, b->computes_with, sizeof a->computes_with) != 0)
            return keel_fail(
                KEEL_EARG,
                "%s computes with %.96s, process 0 with %.96s, so they would not round "
                "alike; install one version of oneDNN everywhere",
                keel_comm_name(c, q, name), b->computes_with, a->computes_with);
    }
    return KEEL_OK;
}

static keel_status introduce(keel_strategy *s, introduction *all)
{
    keel_comm *c = s->comm;
    introduction *own = &all[c->group.rank];
    int64_t lanes = 0, workers = 0;
    own->lanes = s->lanes.n_lane;
    own->workers = s->lanes.n_worker;
    snprintf(own->version, sizeof own->version, "%s", KEEL_VERSION);
    snprintf(own->instructions, sizeof own->instructions, "%s", keel_instructions());
    snprintf(own->computes_with, sizeof own->computes_with, "%s", keel_computes_with());
    KEEL_TRY(keel_comm_all_gather_equal(c, all, sizeof *all));
    KEEL_TRY(compare(c, all));
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

keel_status keel_strategy_create_group_on(keel_strategy **out, const char *devices,
                                          const keel_process_group *group, const keel_cores *cores)
{
    keel_strategy *s = NULL;
    keel_comm *comm = NULL;
    introduction *all = NULL;
    KEEL_TRY(keel_comm_create(&comm, group));
    keel_status status = keel_strategy_create_on(&s, devices, cores);
    /* all learn of one that cannot open its devices */
    status = keel_comm_agree(comm, status, NULL, 0, NULL);
    if (status < 0) goto out;
    if (group->count > 1) {
        const size_t n = (size_t)group->count;
        s->comm = comm;
        comm = NULL;
        s->lanes_before = keel_calloc(n + 1, sizeof *s->lanes_before);
        all = keel_calloc(n, sizeof *all);
        status = s->lanes_before && all ? KEEL_OK : KEEL_ENOMEM;
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

keel_status keel_strategy_timeout(keel_strategy *s, double seconds)
{
    if (!(seconds > 0)) return keel_fail(KEEL_EARG, "a timeout of %g s: must be above 0", seconds);
    if (s->comm) s->comm->timeout = seconds;
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
    keel_comm_destroy(s->comm);
    keel_free(s->lanes_before);
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

keel_status keel_strategy_reproducible(keel_strategy *s, int shards)
{
    if (shards < s->lanes.all_lanes || shards > KEEL_SHARDS_MAX)
        return keel_fail(
            KEEL_EARG, "%d shards for %d %s: each device needs at least one, and %d is the maximum",
            shards, s->lanes.all_lanes, s->lanes.all_lanes == 1 ? "device" : "devices",
            KEEL_SHARDS_MAX);
    s->lanes.shards = shards;
    return KEEL_OK;
}

int keel_strategy_shards(const keel_strategy *s)
{
    return s->lanes.shards;
}
