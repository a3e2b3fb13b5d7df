/* What a stand-in enqueues on its streams. */
#ifndef KEEL_TESTS_STANDIN_WORK_H
#define KEEL_TESTS_STANDIN_WORK_H
#include <stdbool.h>
#include <stdint.h>
#include "device/device.h"
#include "ops/op.h"

typedef enum standin_work_kind {
    STANDIN_COPY,
    STANDIN_CLEAR,
    STANDIN_ADD,
    STANDIN_CALL,
    STANDIN_FOLD,
    STANDIN_MOVE,
    STANDIN_MEASURE,
    STANDIN_ORTHOGONALIZE,
    STANDIN_FACTOR,
    STANDIN_PROJECT,
    STANDIN_CHECK,
    STANDIN_SUM,
    STANDIN_RECORD,
    STANDIN_WAIT
} standin_work_kind;

typedef struct standin_work {
    standin_work_kind kind;
    bool kept;  /* a tape has call and fold */
    bool hangs; /* it never ends */
    void *to;
    const void *from;
    int64_t n;
    keel_dtype real;
    keel_run run;
    keel_call *call;
    keel_device_fold *fold;
    keel_device_move *move;
    keel_device_measure *measure;
    keel_device_orthogonal *orthogonal;
    keel_device_factored *factored;
    keel_device_project *project;
    keel_device_check *check;
    struct standin_event *event;
    struct standin_group *group;
    int rank;
} standin_work;

#endif
