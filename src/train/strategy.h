/* A strategy: the lanes and the team that runs them. */
#ifndef KEEL_TRAIN_STRATEGY_H
#define KEEL_TRAIN_STRATEGY_H
#include "comm/comm.h"
#include "device/lanes.h"
#include "device/team.h"
#include "keel/train.h"

struct keel_strategy {
    keel_lanes lanes;
    keel_team *team;
    char (*name)[64];  /* [n_lane] */
    keel_comm *comm;   /* of the processes that share its steps; NULL: alone */
    int *lanes_before; /* see keel_lanes */
};

/* keel_strategy_create for the given cores instead of the machine's. */
keel_status keel_strategy_create_on(keel_strategy **out, const char *devices,
                                    const keel_cores *cores);

keel_status keel_strategy_create_group_on(keel_strategy **out, const char *devices,
                                          const keel_process_group *group, const keel_cores *cores);

#endif
