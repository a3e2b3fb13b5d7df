/* A step that several processes share: what they agree on before it, and what they exchange around
 * the commit point. Records of rows are exchanged by the program (graph/across.h). Alone, nothing
 * of this happens. */
#ifndef KEEL_TRAIN_TOGETHER_H
#define KEEL_TRAIN_TOGETHER_H
#include "data/feed.h"
#include "graph/across.h"
#include "train/trainer.h"

/* Before every step, and where one is expected and does not come. mine: how this process stands; b
 * NULL: the pass ends here; set: of what its callbacks have set (keel_trainer). KEEL_OK: all have
 * the same step, or the end of the pass. KEEL_END: all end because one of them stops; *stops is the
 * strongest reason. A failure of any process is that of all. */
keel_status keel_together_begin(keel_strategy *s, keel_status mine, const keel_batch *b,
                                uint64_t set, keel_stops *stops);

/* The failure of a step that ran: that which the processes agreed on, else the first in row order,
 * which one device would report. KEEL_OK: none. */
keel_status keel_together_failure(const keel_trainer *t, const keel_program *p);

/* By every worker when its rows are done: all have met, and all processes know the sums and the
 * gradients of the step. From here on each computes the same. A failure of any process is in
 * t->common. test: the program that ran. */
void keel_together_sum(keel_trainer *t, bool test, int worker);

/* By every worker, instead of keel_movers_ask: all processes must be told the same. */
void keel_together_ask(const keel_trainer *t, const keel_score *score, int worker);

/* All processes are about to do the same, of which `what` is a number. KEEL_EARG: one does
 * something else; a failure of any process is that of all. */
keel_status keel_together_same(keel_strategy *s, keel_status mine, uint64_t what);

/* Rows of a step, `bytes` each, of which this process has its own: afterwards it has all. */
keel_status keel_together_rows(keel_strategy *s, int64_t rows, void *data, int64_t bytes);

/* The name of the device or process that has a row of the step. */
const char *keel_together_where(const keel_trainer *t, int64_t row, char out[KEEL_COMM_NAME_MAX]);

#endif
