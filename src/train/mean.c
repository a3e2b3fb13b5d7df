/* See mean.h. What is done to an element is in optimizers/rules.h, since devices do it, too. */
#include "train/mean.h"
#include "optimizers/move.h"

static void move(keel_rule rule, keel_dtype real, void *to, const void *from, int64_t count,
                 keel_rule_numbers number)
{
    keel_move(&(keel_device_move){
        .rule = rule, .real = real, .count = count, .w = to, .g = from, .number = number });
}

void keel_mean_add(keel_dtype real, void *sum, const void *grad, int64_t count)
{
    move(KEEL_RULE_SUM, real, sum, grad, count, (keel_rule_numbers){ 0 });
}

void keel_mean_join(keel_dtype real, void *grad, const void *sum, int64_t count, double steps,
                    double *norm)
{
    move(KEEL_RULE_MEAN, real, grad, sum, count, (keel_rule_numbers){ .steps = steps });
    if (norm) *norm = keel_squares(real, grad, count);
}

void keel_mean_move(keel_dtype real, void *average, const void *w, int64_t count, double momentum)
{
    move(KEEL_RULE_AVERAGE, real, average, w, count, (keel_rule_numbers){ .momentum = momentum });
}
