/* See strategy.h and keel/train.h. */
#include "train/strategy.h"
#include "base/memory.h"
#include "device/discover.h"
#include <stdio.h>

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

void keel_strategy_destroy(keel_strategy *s)
{
    if (!s) return;
    keel_team_destroy(s->team);
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
    if (shards < s->lanes.n_lane || shards > KEEL_SHARDS_MAX)
        return keel_fail(
            KEEL_EARG, "%d shards for %d %s: each device needs at least one, and %d is the maximum",
            shards, s->lanes.n_lane, s->lanes.n_lane == 1 ? "device" : "devices", KEEL_SHARDS_MAX);
    s->lanes.shards = shards;
    return KEEL_OK;
}

int keel_strategy_shards(const keel_strategy *s)
{
    return s->lanes.shards;
}
