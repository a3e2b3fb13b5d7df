/* See move.h. A loop for each rule, in one pass. */
#ifndef REAL
#include "optimizers/move.h"
#include "optimizers/one_pass.h"

#define RULE        static inline __attribute__((always_inline))
#define TIMES(x, y) ((x) * (y))
#define LOOP(rule, slots)                                                                          \
    KEEL_ONE_PASS                                                                                  \
    static void REAL_(rule##_loop)(int64_t n, const REAL_(rule_t) * from, REAL *restrict w,        \
                                   const REAL *restrict g, REAL *restrict a, REAL *restrict b,     \
                                   REAL *restrict c)                                               \
    {                                                                                              \
        const REAL_(rule_t) f = *from;                                                             \
        (void)a, (void)b, (void)c;                                                                 \
        for (int64_t i = 0; i < n; i++) REAL_(rule)(&f, g[i], &w[i] RULE_SLOTS_##slots);           \
    }

#define REAL_FILE "optimizers/_rules.c"
#include "ops/real.h"

void keel_move(const keel_device_move *m)
{
    if (m->real == KEEL_FLOAT64)
        move_f64(m);
    else
        move_f32(m);
}

#else
#include "optimizers/rules.h"
LOOP(plain, 0)
LOOP(momentum, 1)
LOOP(momentum_only, 1)
LOOP(nesterov, 1)
LOOP(adam, 2)
LOOP(amsgrad, 3)
LOOP(rmsprop, 1)
LOOP(rmsprop_momentum, 2)
LOOP(rmsprop_centered, 2)
LOOP(rmsprop_centered_momentum, 3)
LOOP(adagrad, 1)
LOOP(adadelta, 2)
LOOP(adamax, 2)
LOOP(nadam, 2)
LOOP(lion, 1)
LOOP(ftrl, 2)
LOOP(schedule_free, 2)
LOOP(lamb, 2)
LOOP(lamb_step, 2)
LOOP(muon, 1)
LOOP(muon_step, 1)
LOOP(sum, 0)
LOOP(mean, 0)
LOOP(average, 0)
LOOP(penalty, 0)

static void REAL_(move)(const keel_device_move *m)
{
    static void (*const loop[KEEL_RULES])(int64_t, const REAL_(rule_t) *, REAL *, const REAL *,
                                          REAL *, REAL *, REAL *) = {
        [KEEL_RULE_PLAIN] = REAL_(plain_loop),
        [KEEL_RULE_MOMENTUM] = REAL_(momentum_loop),
        [KEEL_RULE_MOMENTUM_ONLY] = REAL_(momentum_only_loop),
        [KEEL_RULE_NESTEROV] = REAL_(nesterov_loop),
        [KEEL_RULE_ADAM] = REAL_(adam_loop),
        [KEEL_RULE_AMSGRAD] = REAL_(amsgrad_loop),
        [KEEL_RULE_RMSPROP] = REAL_(rmsprop_loop),
        [KEEL_RULE_RMSPROP_MOMENTUM] = REAL_(rmsprop_momentum_loop),
        [KEEL_RULE_RMSPROP_CENTERED] = REAL_(rmsprop_centered_loop),
        [KEEL_RULE_RMSPROP_CENTERED_MOMENTUM] = REAL_(rmsprop_centered_momentum_loop),
        [KEEL_RULE_ADAGRAD] = REAL_(adagrad_loop),
        [KEEL_RULE_ADADELTA] = REAL_(adadelta_loop),
        [KEEL_RULE_ADAMAX] = REAL_(adamax_loop),
        [KEEL_RULE_NADAM] = REAL_(nadam_loop),
        [KEEL_RULE_LION] = REAL_(lion_loop),
        [KEEL_RULE_FTRL] = REAL_(ftrl_loop),
        [KEEL_RULE_SCHEDULE_FREE] = REAL_(schedule_free_loop),
        [KEEL_RULE_LAMB] = REAL_(lamb_loop),
        [KEEL_RULE_LAMB_STEP] = REAL_(lamb_step_loop),
        [KEEL_RULE_MUON] = REAL_(muon_loop),
        [KEEL_RULE_MUON_STEP] = REAL_(muon_step_loop),
        [KEEL_RULE_SUM] = REAL_(sum_loop),
        [KEEL_RULE_MEAN] = REAL_(mean_loop),
        [KEEL_RULE_AVERAGE] = REAL_(average_loop),
        [KEEL_RULE_PENALTY] = REAL_(penalty_loop),
    };
    const REAL_(rule_t) f = REAL_(rule_of)(&m->number);
    loop[m->rule](m->count, &f, m->w, m->g, m->slot[0], m->slot[1], m->slot[2]);
}
#undef RULE_SLOTS_0
#undef RULE_SLOTS_1
#undef RULE_SLOTS_2
#undef RULE_SLOTS_3
#endif
