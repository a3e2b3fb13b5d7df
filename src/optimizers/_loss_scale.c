/* See loss_scale.h. The wrapped optimizer is read where optimizers are: it may have a schedule. */
#include "optimizers/loss_scale.h"
#include <strings.h>

static const keel_field fields[] = {
    KEEL_IGNORE("inner_optimizer", "the optimizer that moves the weights"),
    KEEL_FLOAT(keel_loss_scale_args, initial_scale, "32768.0", 1e-30, 3e38, "the first scale"),
    KEEL_INT(keel_loss_scale_args, dynamic_growth_steps, "2000", 1, 1e15,
             "so many good steps in a row double the scale"),
    KEEL_IGNORE("name", "of the optimizer"),
    /* Older files have these; Keras takes only their defaults, too. */
    KEEL_REFUSE("dynamic", "true",
                "Keras takes no fixed scale: set loss_scale_factor of inner_optimizer"),
    KEEL_REFUSE("weight_decay", "null", "give it to inner_optimizer"),
    KEEL_REFUSE("clipnorm", "null", "give it to inner_optimizer"),
    KEEL_REFUSE("global_clipnorm", "null", "give it to inner_optimizer"),
    KEEL_REFUSE("clipvalue", "null", "give it to inner_optimizer"),
    KEEL_REFUSE("use_ema", "false", "give it to inner_optimizer"),
    KEEL_REFUSE("ema_momentum", "0.99", "give it to inner_optimizer"),
    KEEL_REFUSE("ema_overwrite_frequency", "null", "give it to inner_optimizer"),
    KEEL_REFUSE("loss_scale_factor", "null", "the scale is dynamic"),
    KEEL_REFUSE("gradient_accumulation_steps", "null", "give it to inner_optimizer"),
    { 0 },
};

const keel_type keel_loss_scale_type = {
    .name = "LossScaleOptimizer",
    .module = "keras.optimizers",
    .help = "scales the loss for float16, around another optimizer",
    .args_size = sizeof(keel_loss_scale_args),
    .fields = fields,
};

const keel_type *keel_loss_scale_find(const char *name)
{
    return strcasecmp(name, keel_loss_scale_type.name) ? NULL : &keel_loss_scale_type;
}
