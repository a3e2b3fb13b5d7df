/* See tally.h. */
#include "train/tally.h"
#include "base/memory.h"
#include <string.h>

keel_status keel_tally_create(keel_tally *t, const keel_scored *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n_metric; i++) n += s->metric[i].sums;
    double *sums = keel_calloc(2 * (size_t)n, sizeof *sums); /* of the epoch, and of a step */
    if (!sums) return KEEL_ENOMEM;
    *t = (keel_tally){ .metric = sums, .n_sum = n, .n_each = s->n_loss };
    return KEEL_OK;
}

void keel_tally_clear(keel_tally *t)
{
    double *sums = t->metric;
    memset(sums, 0, (size_t)t->n_sum * sizeof *sums);
    *t = (keel_tally){ .metric = sums, .n_sum = t->n_sum, .n_each = t->n_each };
}

void keel_tally_free(keel_tally *t)
{
    keel_free(t->metric);
    *t = (keel_tally){ 0 };
}

void keel_tally_add(keel_tally *tally, const keel_scored *s, const keel_bound *bound, int64_t rows,
                    double loss, const keel_score *score)
{
    tally->loss += loss * (double)rows;
    for (int i = 0; i < s->n_loss; i++) tally->each[i] += score->each[i] * (double)rows;
    tally->rows += (double)rows;
    for (int i = 0; i < s->n_metric; i++) {
        const keel_scored_metric *m = &s->metric[i];
        double *sums = tally->metric + tally->n_sum, *all = tally->metric + m->first;
        keel_program_sums(s->program, bound, m->node, sums);
        if (m->args.metric->merge)
            m->args.metric->merge(m->args.args, all, sums, m->sums);
        else
            for (int64_t k = 0; k < m->sums; k++) all[k] += sums[k];
    }
}

void keel_tally_logs(const keel_scored *s, const keel_tally *tally, keel_logs *logs)
{
    const double rows = tally->rows > 0 ? tally->rows : 1;
    int n = 0;
    logs->value[n++] = tally->loss / rows;
    for (int i = 0; s->n_loss > 1 && i < s->n_loss; i++) logs->value[n++] = tally->each[i] / rows;
    for (int i = 0; i < s->n_metric; i++) {
        const keel_scored_metric *m = &s->metric[i];
        const double *sums = tally->metric + m->first;
        for (int k = 0; k < m->values; k++)
            logs->value[n++] = keel_metric_value(m->args.metric, m->args.args, sums, m->sums, k);
    }
}
