/* Runs a kernel for CUDA on the emulator, from a call whose pointers are the host's: each array is
 * a piece of device memory of exactly the size that the call may use, with a gap behind. */
#ifndef TESTS_CUDA_CALLS_H
#define TESTS_CUDA_CALLS_H
#include "cuda_facts.h"
#include "emulator.h"
#include "kernel_bench.h"

static const keel_kernel *cuda_kernel;
static keel_pass cuda_pass;
static const char *cuda_name = "";
static int cuda_left_out = -1;                   /* the gradient that is not wanted */
static keel_status cuda_expected = KEEL_OK;      /* of the call */
static bool cuda_may_fail;                       /* whether it fails is the caller\'s to judge */
static char cuda_error[1024], cuda_report[1024]; /* of the call */
static int64_t cuda_shift; /* bytes by which arrays of values begin behind a multiple of 16, where
                              the kernel is ours: a library relies on arrays that begin as they do
                              in the engine */

enum { CUDA_COPIES = 64 };
static struct cuda_copy {
    void *host, *device;
    int64_t bytes;
    bool known, writes;
} cuda_copies[CUDA_COPIES];
static int n_cuda_copies;

/* The device's copy of `bytes` of the host's, which may be NULL. `known`: the kernel may read them;
 * what it only writes nobody has written yet. */
static inline void *to_device(const void *host, int64_t bytes, bool known, bool writes,
                              const char *name)
{
    if (!host) return NULL;
    assert_true(n_cuda_copies < CUDA_COPIES);
    struct cuda_copy *c = &cuda_copies[n_cuda_copies++];
    const int64_t shift = strcmp(name, "record") && !cuda_kernel->vendor ? cuda_shift : 0;
    char *at = emu_allocate(bytes + shift, name);
    *c = (struct cuda_copy){ (void *)(uintptr_t)host, at + shift, bytes, known, writes };
    if (known) emu_copy_in(c->device, host, bytes);
    return c->device;
}

/* What only is read must be as before. */
static inline void from_device(void)
{
    for (int i = 0; i < n_cuda_copies; i++) {
        const struct cuda_copy *c = &cuda_copies[i];
        if (c->writes) emu_copy_out(c->host, c->device, c->bytes);
        if (!c->known || c->writes) continue;
        void *now = keel_calloc(1, (size_t)c->bytes + 1);
        assert_non_null(now);
        emu_copy_out(now, c->device, c->bytes);
        if (memcmp(c->host, now, (size_t)c->bytes) != 0)
            fail_msg("%s: pass %d writes what it only may read", cuda_name, (int)cuda_pass);
        keel_free(now);
    }
    n_cuda_copies = 0;
    emu_release_all();
}

static inline int64_t cuda_bytes(const keel_spec *s, int64_t rows)
{
    return rows * keel_row_count(s) * (int64_t)keel_dtype_size(s->dtype);
}

static int64_t cuda_scratch;
static keel_run cuda_run;

static inline void cuda_staged_run(const keel_call *host)
{
    const keel_node *n = host->node;
    const keel_pass pass = cuda_pass;
    const void *in[IN_MAX], *weight[WEIGHTS_MAX], *out_grad[OUT_MAX];
    void *out[OUT_MAX], *saved[SAVED_MAX], *in_grad[IN_MAX], *weight_grad[WEIGHTS_MAX];
    const bool forward = pass == KEEL_FORWARD, back = pass == KEEL_BACKWARD;
    const bool backwards = back || pass == KEEL_WEIGHTS || pass == KEEL_PARTIAL_BACKWARD;
    /* gradients have the type of what they are of, where that is real */
    const bool narrow = keel_dtype_is_narrow(n->held);
    keel_call c = *host;
    c.device = emu_device();
    c.facts = cuda_facts(host->step);
    c.step = NULL; /* the host's: a kernel that reads it here would keep it in a graph */
    c.in = in, c.out = out, c.saved = saved, c.weight = weight;
    c.out_grad = out_grad, c.in_grad = in_grad, c.weight_grad = weight_grad;
    for (int i = 0; i < n->n_in; i++) {
        const int64_t bytes = host->rows * keel_row_count(&n->in[i]) * (narrow ? 2 : 4);
        in[i] = to_device(host->in[i], bytes, true, false, "in");
        in_grad[i] = back && i != cuda_left_out
                         ? to_device(host->in_grad[i], bytes, host->in_adds[i], true, "in_grad")
                         : NULL;
    }
    for (int i = 0; i < n->n_out; i++) {
        const int64_t bytes = cuda_bytes(&n->out[i], host->rows);
        out[i] = to_device(host->out[i], bytes, !forward, forward, "out");
        out_grad[i] =
            backwards ? to_device(host->out_grad[i], bytes, true, false, "out_grad") : NULL;
    }
    for (int i = 0; i < n->n_saved; i++)
        saved[i] = to_device(host->saved[i], cuda_bytes(&n->saved[i], host->rows), backwards,
                             forward || back, "saved");
    for (int i = 0; i < n->n_weight; i++) {
        const int64_t bytes = keel_row_count(&n->weight[i]) * (int64_t)sizeof(float);
        weight[i] = to_device(host->weight[i], bytes, true, false, "weight");
        /* what is moved at the commit has no gradient */
        weight_grad[i] = pass == KEEL_WEIGHTS && i != cuda_left_out
                             ? to_device(host->weight_grad[i], bytes,
                                         host->weight_adds || n->op->commit, true, "weight_grad")
                             : NULL;
    }
    const int64_t record = pass == KEEL_PARTIAL            ? n->partial
                           : pass == KEEL_PARTIAL_BACKWARD ? n->partial_backward
                                                           : 0;
    c.partial =
        record ? to_device(host->partial, host->rows * record * 8, false, true, "record") : NULL;
    c.merged = to_device(host->merged, 8 * (backwards ? n->merged_backward : n->merged), true,
                         false, "record");
    c.merged_forward = to_device(host->merged_forward, 8 * n->merged, true, false, "record");
    c.scratch = emu_allocate(cuda_scratch, "scratch");
    const int64_t before = emu_launches();
    cuda_run(&c);
    const char *report = emu_report();
    snprintf(cuda_report, sizeof cuda_report, "%s", report ? report : "");
    if (report && cuda_expected == KEEL_OK && !cuda_may_fail)
        fail_msg("%s, pass %d: %s", cuda_name, (int)pass, report);
    const keel_status s = keel_call_status_take();
    if (s != KEEL_OK) snprintf(cuda_error, sizeof cuda_error, "%s", keel_error());
    if (s != cuda_expected && !cuda_may_fail && emu_launches() > before)
        fail_msg("%s, pass %d: status %d: %s", cuda_name, (int)pass, (int)s, keel_error());
    from_device();
}

static inline keel_status cuda_staged_prepare(keel_prepare *p)
{
    p->device = emu_device();
    const keel_status s = cuda_kernel->prepare(p);
    cuda_scratch = p->scratch;
    cuda_run = keel_dtype_is_narrow(p->node->held) ? narrow_pass(cuda_kernel, p->pass)
                                                   : cuda_kernel->run[p->pass];
    return s;
}

/* The kernel k as one for calls of the host. */
static inline keel_kernel cuda_staged(const keel_kernel *k)
{
    keel_kernel staged = *k;
    staged.prepare = cuda_staged_prepare;
    for (int p = 0; p < KEEL_PASS_COUNT; p++) {
        if (k->run[p]) staged.run[p] = cuda_staged_run;
        if (k->narrow[p]) staged.narrow[p] = cuda_staged_run;
        if (k->half[p]) staged.half[p] = cuda_staged_run;
    }
    return staged;
}

#endif
