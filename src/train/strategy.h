/* A strategy: the lanes and the team that runs them. */
#ifndef KEEL_TRAIN_STRATEGY_H
#define KEEL_TRAIN_STRATEGY_H
#include "comm/comm.h"
#include "device/lanes.h"
#include "device/team.h"
#include "keel/train.h"
#include "model/model.h"
#include "train/gpus_apart.h"

struct keel_strategy {
    keel_lanes lanes;
    keel_team *team;
    int n_opened;                        /* GPUs of the lanes that it closes */
    bool unnamed;                        /* nobody has said which devices: all cores */
    char (*name)[64];                    /* [n_lane] */
    keel_comm *comm;                     /* of the processes that share its steps; NULL: alone */
    int *lanes_before;                   /* [n_process + 1] of the processes before each */
    int *units_before;                   /* [n_process + 1] see keel_lanes; of unequal shares */
    bool one_kind;                       /* all lanes of all processes are devices of one kind */
    keel_compress compress;              /* how gradients travel; none, if it is alone */
    bool shard_optimizer;                /* each process keeps a part of the optimizer's state */
    char shared_gpu[KEEL_GPUS_TEXT_MAX]; /* a line about a GPU that several processes use; empty:
                                            none */
    bool recompute;                      /* of programs that train: see graph/recompute.h */
    int64_t micro_batch; /* of fits: rows that a core takes at once; 0: as Keel chooses */
};

/* keel_strategy_create for the given cores instead of the machine's. */
keel_status keel_strategy_create_on(keel_strategy **out, const char *devices,
                                    const keel_cores *cores);

/* One lane on each of n devices, which stay the caller's and outlive the strategy. */
keel_status keel_strategy_create_devices(keel_strategy **out, keel_device *const *device, int n);

/* The same with lanes of cores behind them, as "cpu:0-1" names them; beside NULL: none. n may be 0
 * if there are some. */
keel_status keel_strategy_create_beside(keel_strategy **out, keel_device *const *device, int n,
                                        const char *beside);
keel_status keel_strategy_create_beside_on(keel_strategy **out, keel_device *const *device, int n,
                                           const char *beside, const keel_cores *cores);

/* One lane of s alone, on its device or its cores; it must not be shared. s outlives it. */
keel_status keel_strategy_create_lane(keel_strategy **out, const keel_strategy *s, int lane);

/* Whether each lane has one of so many shards at least; 0: there are none. share.c. */
keel_status keel_strategy_check_shares(const keel_lanes *l, int shards);

keel_status keel_strategy_create_group_on(keel_strategy **out, const char *devices,
                                          const keel_process_group *group, const keel_cores *cores);
/* keel_strategy_create_beside for each process of a group, which it takes over. */
keel_status keel_strategy_create_group_beside(keel_strategy **out, keel_device *const *device,
                                              int n, const char *beside,
                                              const keel_process_group *group);

/* Whether a model of this type may train as keel_strategy_compress says. */
keel_status keel_strategy_check_compress(const keel_strategy *s, keel_dtype real);
/* Whether m may train as keel_strategy_shard_optimizer says. */
keel_status keel_strategy_check_shards(const keel_strategy *s, const keel_model *m);
/* Whether all lanes of this process are devices of one kind. */
bool keel_strategy_one_kind(const keel_strategy *s);
/* "none", "bf16" */
const char *keel_compress_name(keel_compress how);

#endif
