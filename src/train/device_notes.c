/* See device_notes.h. */
#include "train/device_notes.h"
#include "base/text.h"
#include "device/gpus.h"
#include "train/resident.h"

static keel_status tell(const keel_fit_options *o, keel_text *line)
{
    const keel_status s = line->failed ? KEEL_ENOMEM : KEEL_OK;
    if (s >= 0 && line->length) o->explain_devices(o->explain_devices_context, line->data);
    keel_text_free(line);
    return s;
}

static keel_status tell_staged(const keel_fit_options *o, const keel_program *p)
{
    keel_text line = { 0 }, staged = { 0 };
    keel_program_staged(p, &staged);
    if (staged.length) keel_text_add(&line, "runs staged through the host: %s", staged.data);
    line.failed = line.failed || staged.failed;
    keel_text_free(&staged);
    return tell(o, &line);
}

static keel_status tell_shared(const keel_fit_options *o, const keel_trainer *t)
{
    keel_text line = { 0 };
    if (*t->strategy->shared_gpu) keel_text_add(&line, "%s", t->strategy->shared_gpu);
    return tell(o, &line);
}

static keel_status tell_unlocked(const keel_fit_options *o, int64_t bytes)
{
    keel_text line = { 0 };
    if (bytes > 0)
        keel_text_add(&line,
                      "no page-locked memory for %lld bytes of copies, so the host waits for them; "
                      "allow more of it (ulimit -l)",
                      (long long)bytes);
    return tell(o, &line);
}

static keel_status tell_moves(const keel_fit_options *o, const keel_trainer *t)
{
    const char *why = keel_resident_why_not(t);
    keel_text line = { 0 };
    if (why) keel_text_add(&line, "the optimizer runs on the host: %s", why);
    return tell(o, &line);
}

static keel_status tell_sums(const keel_fit_options *o, const keel_trainer *t)
{
    keel_text line = { 0 };
    if (*t->no_sums) keel_text_add(&line, "gradients are added by the host: %s", t->no_sums);
    return tell(o, &line);
}

/* Cores train because nobody has named devices, and GPUs rest. */
static keel_status tell_unused(const keel_fit_options *o, const keel_strategy *s)
{
    keel_gpu gpu[KEEL_GPUS_MAX];
    char name[sizeof gpu->name];
    keel_text line = { 0 };
    const int n = s->unnamed ? keel_gpus_find(gpu) : 0;
    if (n > 0)
        keel_text_add(&line,
                      "%d %s (%s) %s not used, since no devices were named: \"cuda\" names %s", n,
                      n == 1 ? "GPU" : "GPUs", keel_printable(name, sizeof name, gpu[0].name),
                      n == 1 ? "is" : "are", n == 1 ? "it" : "them");
    return tell(o, &line);
}

keel_status keel_device_notes_tell(const keel_fit_options *o, const keel_trainer *t,
                                   const keel_program *p, bool trains, int64_t unlocked)
{
    const keel_lanes *l = p->lanes;
    if (!o->explain_devices) return KEEL_OK;
    if (!keel_lanes_device(l)) return trains ? tell_unused(o, t->strategy) : KEEL_OK;
    if (trains) KEEL_TRY(tell_shared(o, t));
    KEEL_TRY(tell_staged(o, p));
    if (trains) KEEL_TRY(tell_moves(o, t));
    if (trains) KEEL_TRY(tell_sums(o, t));
    KEEL_TRY(tell_unlocked(o, t->arenas->unlocked + unlocked));
    for (int w = 0; !trains && w < l->n_worker; w++)
        if (l->device[w] && l->device[w]->lacks[0])
            o->explain_devices(o->explain_devices_context, l->device[w]->lacks);
    return KEEL_OK;
}
