/* How the processes of a fit share its steps: gradients that travel compressed, and the optimizer's
 * state in parts. Where processes act as one, neither changes anything, which is said. */
#include "processes.h"
#include <stdio.h>

/* The options of processes that share steps by messages; none, of one or of those that act as one.
 */
static keel_sharing in_force(const keel_sharing *o, const keel_strategy *s)
{
    return keel_strategy_processes(s) > 1 ? *o : (keel_sharing){ 0 };
}

int keel_sharing_set(const keel_sharing *o, keel_strategy *s)
{
    const keel_sharing now = in_force(o, s);
    keel_status status = keel_strategy_shard_optimizer(s, now.shard_optimizer);
    if (status >= 0) status = keel_strategy_compress(s, (keel_compress)now.compress);
    return status < 0 ? keel_complain_status(status) : -1;
}

void keel_sharing_begin(const keel_sharing *o, const keel_strategy *s)
{
    const keel_sharing now = in_force(o, s);
    if (now.compress) fputs(", gradients travel as bf16", stdout);
    if (now.shard_optimizer)
        printf(", each with 1/%d of the optimizer's state, which is lost with it",
               keel_strategy_processes(s));
    putchar('\n');
    if (o->compress && !now.compress)
        puts("--compress bf16 changes nothing: the processes act as one, so no gradients travel");
    if (o->shard_optimizer && !now.shard_optimizer)
        puts("--shard-optimizer changes nothing: the processes act as one, which has one state");
}

void keel_sharing_report(const keel_sharing *o, const keel_strategy *s, const keel_model *m)
{
    const keel_sharing now = in_force(o, s);
    if (now.compress) puts("compress bf16: gradients travelled between the processes as bfloat16");
    if (now.shard_optimizer)
        printf("sharded  the optimizer's state was in %d parts, one in each process; the saved "
               "model has %s\n",
               keel_strategy_processes(s),
               keel_model_has_state(m) ? "all of it" : "none, since a part of it is lost");
}
