/* See _conv_graph.h. Descriptors and the graph need no device: cuDNN checks them when they are
 * finalized. Engines and plans do. */
#include "ops/cuda/_conv_graph.h"
#include <initializer_list>
#include <stdio.h>
extern "C" {
#include "base/memory.h"
}

namespace
{
typedef cudnnBackendDescriptor_t descriptor;

const int CONFIGS = 24; /* that are asked for, and tried one by one */
const int KEPT = 16;
enum { ID_X = 1, ID_W, ID_Y };
} // namespace

struct conv_plan {
    cuda_dnn dnn;
    descriptor kept[KEPT]; /* what the plan was made of, in the order in which it was */
    int n;
    descriptor plan, pack; /* of kept; pack: the pointers of the last run, NULL: none yet */
    const void *at[4];     /* they are */
    int64_t workspace;
};

namespace
{
/* The steps of making a plan: after a failure nothing more is called. */
struct maker {
    const cudnn_functions *of;
    conv_plan *plan;
    cudnnStatus_t first;
    char why[200];

    bool well() const
    {
        return first == CUDNN_STATUS_SUCCESS;
    }
    bool note(cudnnStatus_t s)
    {
        if (s == CUDNN_STATUS_SUCCESS || !well()) return well();
        first = s;
        of->cudnnGetLastErrorString(why, sizeof why);
        return false;
    }
    descriptor make(cudnnBackendDescriptorType_t type)
    {
        descriptor d = nullptr;
        if (well() && note(of->cudnnBackendCreateDescriptor(type, &d))) plan->kept[plan->n++] = d;
        return d;
    }
    void set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             int64_t n, const void *values)
    {
        if (well()) note(of->cudnnBackendSetAttribute(d, name, type, n, values));
    }
    template <class V>
    void set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             V value)
    {
        set(d, name, type, 1, &value);
    }
    descriptor finish(descriptor d)
    {
        if (well()) note(of->cudnnBackendFinalize(d));
        return d;
    }
};

/* ---- the graph --------------------------------------------------------------------------------
 */

cudnnDataType_t type_of(keel_dtype type)
{
    return type == KEEL_FLOAT16    ? CUDNN_DATA_HALF
           : type == KEEL_BFLOAT16 ? CUDNN_DATA_BFLOAT16
                                   : CUDNN_DATA_FLOAT;
}

descriptor tensor(maker *m, int64_t id, keel_dtype type, int aligned, int dims, const int64_t *n,
                  const int64_t *strides)
{
    descriptor d = m->make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    m->set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
    m->set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(type));
    m->set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, (int64_t)aligned);
    m->set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims, n);
    m->set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, dims, strides);
    return m->finish(d);
}

/* [n, places.., c] as it lies, in cuDNN's order: n, c, places. Rows, or filters. */
descriptor channels_last(maker *m, int64_t id, keel_dtype type, int aligned, int dims, int64_t n,
                         int64_t c, const int64_t *places)
{
    int64_t size[5] = { n, c }, stride[5] = { 0, 1 }, step = c;
    for (int d = dims - 1; d >= 0; d--) {
        size[2 + d] = places[d];
        stride[2 + d] = step;
        step *= places[d];
    }
    stride[0] = step;
    return tensor(m, id, type, aligned, 2 + dims, size, stride);
}

descriptor window(maker *m, const cuda_geometry *g)
{
    descriptor d = m->make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    m->set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    m->set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
           CUDNN_CROSS_CORRELATION);
    m->set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, (int64_t)g->dims);
    m->set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, g->dims, g->before);
    m->set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, g->dims, g->after);
    m->set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, g->dims, g->stride);
    m->set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, g->dims, g->dilation);
    return m->finish(d);
}

/* The names of one operation's attributes. */
struct names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
};

const names names_of[] = {
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA },
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA },
};

descriptor graph(maker *m, const conv_graph *x)
{
    const cuda_geometry *g = x->g;
    const names *a = &names_of[x->direction];
    descriptor at[] = {
        channels_last(m, ID_X, x->type, x->aligned_x, g->dims, x->rows, g->c, g->x),
        channels_last(m, ID_W, x->type, 16, g->dims, g->k, g->c / g->groups, g->size),
        channels_last(m, ID_Y, x->type, x->aligned_y, g->dims, x->rows, g->k, g->y), window(m, g)
    };
    descriptor d = m->make(a->type);
    m->set(d, a->x, CUDNN_TYPE_BACKEND_DESCRIPTOR, at[0]);
    m->set(d, a->w, CUDNN_TYPE_BACKEND_DESCRIPTOR, at[1]);
    m->set(d, a->y, CUDNN_TYPE_BACKEND_DESCRIPTOR, at[2]);
    m->set(d, a->window, CUDNN_TYPE_BACKEND_DESCRIPTOR, at[3]);
    m->set(d, a->alpha, CUDNN_TYPE_FLOAT, 1.0f);
    m->set(d, a->beta, CUDNN_TYPE_FLOAT, x->adds ? 1.0f : 0.0f);
    m->finish(d);
    descriptor all = m->make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    m->set(all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, d);
    if (m->plan->dnn.handle) /* a graph can be checked without a device */
        m->set(all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, m->plan->dnn.handle);
    return m->finish(all);
}

/* ---- the engine -------------------------------------------------------------------------------
 */

/* Whether an engine with this property may run: sums are float32 in one order, and float32 values
 * are multiplied as they are. */
bool may_have(cudnnBackendNumericalNote_t note, const conv_graph *x)
{
    switch (note) {
    case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
    case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return keel_dtype_is_narrow(x->type) || x->float32 == KEEL_FLOAT32_FAST;
    case CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP:
        return true;
    default: /* other orders each time, narrow sums, FFT, Winograd; and what is not known yet */
        return false;
    }
}

/* What belongs to one configuration while it is tried. */
struct attempt {
    maker *m;
    const conv_graph *x;

    bool notes_fit(descriptor engine) const
    {
        cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
        int64_t n = 0;
        m->note(m->of->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                CUDNN_TYPE_NUMERICAL_NOTE,
                                                CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note));
        bool fit = m->well();
        for (int64_t i = 0; fit && i < n; i++) fit = may_have(note[i], x);
        return fit;
    }

    bool engine_fits(descriptor config) const
    {
        descriptor engine = nullptr;
        int64_t n = 0;
        if (!m->well() ||
            !m->note(m->of->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)))
            return false;
        m->note(m->of->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine));
        const bool fit = m->well() && n == 1 && notes_fit(engine);
        m->of->cudnnBackendDestroyDescriptor(engine);
        return fit;
    }

    /* An engine may still refuse its plan, which is no failure: the next is tried. */
    bool plan_fits(descriptor config) const
    {
        conv_plan *to = m->plan;
        int64_t n = 0;
        descriptor d = m->make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        m->set(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, config);
        m->set(d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, to->dnn.handle);
        if (!m->well()) return false;
        to->workspace = to->dnn.workspace + 1;
        if (m->of->cudnnBackendFinalize(d) == CUDNN_STATUS_SUCCESS)
            m->note(m->of->cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                    CUDNN_TYPE_INT64, 1, &n, &to->workspace));
        to->plan = d;
        if (m->well() && to->workspace >= 0 && to->workspace <= to->dnn.workspace) return true;
        m->of->cudnnBackendDestroyDescriptor(to->kept[--to->n]);
        to->plan = nullptr;
        return false;
    }
};

/* Tries what one way of asking proposes, best first. The configuration that fits is kept. */
bool try_all(const attempt *a, descriptor graph, cudnnBackendHeurMode_t mode)
{
    maker *m = a->m;
    descriptor config[CONFIGS] = {}, chosen = nullptr;
    int64_t n = 0;
    const int kept = m->plan->n;
    descriptor d = m->make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    m->set(d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph);
    m->set(d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    m->finish(d);
    for (descriptor &one : config)
        if (m->well())
            m->note(m->of->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &one));
    if (m->well())
        m->note(m->of->cudnnBackendGetAttribute(
            d, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &n, config));
    for (int64_t i = 0; !chosen && m->well() && i < n && i < CONFIGS; i++)
        if (a->engine_fits(config[i]) && a->plan_fits(config[i])) chosen = config[i];
    for (descriptor one : config)
        if (one && one != chosen) m->of->cudnnBackendDestroyDescriptor(one);
    if (chosen) m->plan->kept[m->plan->n++] = chosen;
    if (!chosen && m->plan->n > kept)
        m->of->cudnnBackendDestroyDescriptor(m->plan->kept[--m->plan->n]);
    return chosen;
}

/* What cuDNN has not got is no failure. */
bool is_refused(cudnnStatus_t s)
{
    return CUDNN_STATUS_CATEGORY(s) == CUDNN_STATUS_NOT_SUPPORTED;
}

bool find(maker *m, const conv_graph *x)
{
    const attempt a = { m, x };
    descriptor d = graph(m, x);
    for (cudnnBackendHeurMode_t mode : { CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK }) {
        if (m->well() && try_all(&a, d, mode)) return true;
        if (is_refused(m->first)) m->first = CUDNN_STATUS_SUCCESS;
    }
    return false;
}

/* The pointers of a run, as cuDNN wants them. */
void repack(maker *m, const void *const at[4])
{
    conv_plan *pl = m->plan;
    const int64_t ids[] = { ID_X, ID_W, ID_Y };
    if (pl->pack) m->of->cudnnBackendDestroyDescriptor(pl->kept[--pl->n]);
    pl->pack = nullptr;
    descriptor d = m->make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    m->set(d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, ids);
    m->set(d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, at);
    m->set(d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, at[3]);
    pl->pack = d;
    m->finish(d);
    for (int i = 0; i < 4; i++) pl->at[i] = m->well() ? at[i] : nullptr;
}
} // namespace

keel_status conv_plan_create(const keel_prepare *p, const conv_graph *x, conv_plan **out,
                             int64_t *scratch)
{
    const cuda_dnn *dnn = keel_cuda_dnn(p->device);
    if (!dnn) return KEEL_EUNSUP;
    conv_plan *pl = static_cast<conv_plan *>(keel_calloc(1, sizeof *pl));
    if (!pl) return KEEL_ENOMEM;
    pl->dnn = *dnn;
    maker m = { dnn->of, pl, CUDNN_STATUS_SUCCESS, "" };
    if (find(&m, x)) {
        *out = pl;
        *scratch = cuda_piece(pl->workspace);
        return KEEL_OK;
    }
    conv_plan_destroy(pl);
    if (m.well() || is_refused(m.first)) return KEEL_EUNSUP;
    return keel_fail(KEEL_EDEVICE, "a convolution by cuDNN: %s%s%s",
                     m.of->cudnnGetErrorString(m.first), *m.why ? ": " : "", m.why);
}

void conv_plan_destroy(conv_plan *pl)
{
    if (!pl) return;
    while (pl->n > 0) pl->dnn.of->cudnnBackendDestroyDescriptor(pl->kept[--pl->n]);
    keel_free(pl);
}

bool conv_plan_run(const keel_call *c, conv_plan *pl, const void *x, const void *w, const void *y,
                   void *workspace)
{
    const void *const at[] = { x, w, y, pl->workspace ? workspace : nullptr };
    maker m = { pl->dnn.of, pl, CUDNN_STATUS_SUCCESS, "" };
    bool same = pl->pack != nullptr;
    for (int i = 0; i < 4; i++) same = same && at[i] == pl->at[i];
    if (!same) repack(&m, at);
    if (m.well()) m.note(m.of->cudnnBackendExecute(pl->dnn.handle, pl->plan, pl->pack));
    if (m.well()) return true;
    keel_call_failed(
        c, keel_fail(KEEL_EDEVICE, "layer '%s': the op %s could not be launched: cuDNN: %s",
                     c->node->layer, c->node->op->name, m.of->cudnnGetErrorString(m.first)));
    return false;
}
