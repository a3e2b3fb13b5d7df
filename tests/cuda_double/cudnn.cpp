/* A double of cuDNN's graphs of one convolution: see double.h. Tensors lie channels last, as all of
 * ours do. */
#include "double.h"
#include "device/cuda/libraries.h"
#include <map>
#include <string.h>
#include <vector>

struct cudnnContext {
    bool live;
    cudaStream_t stream;
};

namespace
{
/* Engines that the double proposes, best first; only the last is of the second way of asking. */
enum engine { CHANGING, TENSOR_CORES, GREEDY, REFUSING, PLAIN, ENGINES };
const size_t NEEDS = 3000; /* bytes of workspace */

struct node;
struct attribute {
    cudnnBackendAttributeType_t type;
    int64_t count;
    std::vector<char> bytes;
};

struct node { /* a descriptor; kept when it is destroyed, so that a later use is seen */
    cudnnBackendDescriptorType_t type;
    bool live, finished;
    std::map<int, attribute> has;
    int engine = -1;             /* of configurations and engines */
    const node *graph = nullptr; /* they are for */
};
std::vector<node *> *const nodes = new std::vector<node *>();

struct rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
};

#define OPERATION(kind, word, X, W, Y)                                                             \
    { CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                     \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##word##_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 },  \
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                 \
          CUDNN_ATTR_OPERATION_CONVOLUTION_##word##_##X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 },    \
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                 \
          CUDNN_ATTR_OPERATION_CONVOLUTION_##word##_##W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 },    \
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                 \
          CUDNN_ATTR_OPERATION_CONVOLUTION_##word##_##Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 },    \
        { CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                 \
          CUDNN_ATTR_OPERATION_CONVOLUTION_##word##_ALPHA, CUDNN_TYPE_FLOAT, 1, 1 },               \
    {                                                                                              \
        CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                                   \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##word##_BETA, CUDNN_TYPE_FLOAT, 1, 1                 \
    }
#define TENSOR(name, type, least, most)                                                            \
    {                                                                                              \
        CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_##name, type, least, most               \
    }
#define WINDOW(name, type, least, most)                                                            \
    {                                                                                              \
        CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_##name, type, least, most     \
    }

/* What a descriptor must have before it is finished. */
const rule rules[] = {
    TENSOR(UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1),
    TENSOR(DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1),
    TENSOR(BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1),
    TENSOR(DIMENSIONS, CUDNN_TYPE_INT64, 4, 5),
    TENSOR(STRIDES, CUDNN_TYPE_INT64, 4, 5),
    WINDOW(COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1),
    WINDOW(CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, 1),
    WINDOW(SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, 1),
    WINDOW(PRE_PADDINGS, CUDNN_TYPE_INT64, 2, 3),
    WINDOW(POST_PADDINGS, CUDNN_TYPE_INT64, 2, 3),
    WINDOW(FILTER_STRIDES, CUDNN_TYPE_INT64, 2, 3),
    WINDOW(DILATIONS, CUDNN_TYPE_INT64, 2, 3),
    OPERATION(FORWARD, FORWARD, X, W, Y),
    OPERATION(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    OPERATION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    { CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 },
    { CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
      1, 1 },
    { CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 },
    { CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1 },
    { CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
      CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1 },
    { CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
      1, 1 },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
      3, 3 },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
      CUDNN_TYPE_VOID_PTR, 3, 3 },
    { CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
      1, 1 },
};

const rule *rule_of(const node *n, int name)
{
    for (const rule &r : rules)
        if (r.of == n->type && r.name == name) return &r;
    return nullptr;
}

size_t size_of(cudnnBackendAttributeType_t t)
{
    return t == CUDNN_TYPE_INT64 || t == CUDNN_TYPE_HANDLE || t == CUDNN_TYPE_VOID_PTR ||
                   t == CUDNN_TYPE_BACKEND_DESCRIPTOR
               ? 8
               : 4;
}

bool is_live(const char *f, const char *what, const node *n)
{
    if (n && n->live) return true;
    return double_wrong(f, "%s %s", what, n ? "was destroyed before" : "was never created (NULL)");
}

bool is_finished(const char *f, const char *what, const node *n)
{
    if (!is_live(f, what, n)) return false;
    return n->finished ? true : double_wrong(f, "%s is not finalized", what);
}

template <class T> T value_of(const node *n, int name, int64_t i = 0)
{
    T x;
    memcpy(&x, n->has.at(name).bytes.data() + i * (int64_t)sizeof x, sizeof x);
    return x;
}

int64_t number(const node *n, int name, int64_t i = 0)
{
    return value_of<int64_t>(n, name, i);
}

const node *child(const node *n, int name)
{
    return static_cast<const node *>(value_of<void *>(n, name));
}

/* ---- what the graph says ----------------------------------------------------------------------
 */

/* [n, places.., c], over three dims. */
struct tensor {
    int64_t id, n, c, place[3], places, aligned;
    int dims;
    double_type type;

    int64_t count() const
    {
        return n * c * places;
    }
    size_t bytes() const
    {
        return (size_t)count() * double_size(type);
    }
};

bool tensor_of(const char *f, const node *d, tensor *out)
{
    const int64_t dims = d->has.at(CUDNN_ATTR_TENSOR_DIMENSIONS).count;
    const cudnnDataType_t type = value_of<cudnnDataType_t>(d, CUDNN_ATTR_TENSOR_DATA_TYPE);
    *out = {};
    out->id = number(d, CUDNN_ATTR_TENSOR_UNIQUE_ID);
    out->aligned = number(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    out->type = type == CUDNN_DATA_FLOAT  ? DOUBLE_F32
                : type == CUDNN_DATA_HALF ? DOUBLE_F16
                                          : DOUBLE_BF16;
    out->dims = (int)dims - 2;
    out->places = 1;
    if (d->has.at(CUDNN_ATTR_TENSOR_STRIDES).count != dims)
        return double_wrong(f, "a tensor of %lld dims has other strides", (long long)dims);
    for (int i = 0; i < 3; i++) out->place[i] = 1;
    for (int64_t i = 0; i < dims; i++) {
        const int64_t size = number(d, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
        if (size < 1)
            return double_wrong(f, "dim %lld of a tensor is %lld", (long long)i, (long long)size);
        if (i >= 2) out->place[3 - dims + i] = size, out->places *= size;
    }
    out->n = number(d, CUDNN_ATTR_TENSOR_DIMENSIONS, 0);
    out->c = number(d, CUDNN_ATTR_TENSOR_DIMENSIONS, 1);
    int64_t step = out->c;
    bool last = number(d, CUDNN_ATTR_TENSOR_STRIDES, 1) == 1;
    for (int64_t i = dims - 1; i >= 2; i--) {
        last = last && number(d, CUDNN_ATTR_TENSOR_STRIDES, i) == step;
        step *= number(d, CUDNN_ATTR_TENSOR_DIMENSIONS, i);
    }
    if (!last || number(d, CUDNN_ATTR_TENSOR_STRIDES, 0) != step)
        return double_wrong(f, "a tensor does not lie channels last without gaps");
    if (out->aligned < (int64_t)double_size(out->type) || out->aligned & (out->aligned - 1))
        return double_wrong(f, "a tensor is aligned to %lld bytes", (long long)out->aligned);
    return true;
}

struct convolution {
    cudnnBackendDescriptorType_t kind;
    tensor x, w, y;
    int64_t stride[3], dilation[3], before[3];
    float alpha, beta;

    bool is(const char *f, const node *operation);
    const tensor &result() const
    {
        return kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? y
               : kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? x
                                                                                      : w;
    }
};

/* The attributes of an operation are six rules, one after another. */
const rule *rules_of(cudnnBackendDescriptorType_t operation)
{
    const rule *r = rules;
    while (r->of != operation) r++;
    return r;
}

bool convolution::is(const char *f, const node *operation)
{
    const rule *r = rules_of(operation->type);
    const node *window = child(operation, r[0].name);
    const node *at[] = { child(operation, r[1].name), child(operation, r[2].name),
                         child(operation, r[3].name) };
    if (!is_finished(f, "the window", window) || !is_finished(f, "x", at[0]) ||
        !is_finished(f, "w", at[1]) || !is_finished(f, "y", at[2]) || !tensor_of(f, at[0], &x) ||
        !tensor_of(f, at[1], &w) || !tensor_of(f, at[2], &y))
        return false;
    kind = operation->type;
    alpha = value_of<float>(operation, r[4].name);
    beta = value_of<float>(operation, r[5].name);
    if (x.dims != y.dims || x.dims != w.dims ||
        number(window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != x.dims)
        return double_wrong(f, "tensors and window have different dims");
    if (x.n != y.n)
        return double_wrong(f, "x has %lld rows, and y %lld", (long long)x.n, (long long)y.n);
    if (x.c % w.c || w.n % (x.c / w.c) || y.c != w.n)
        return double_wrong(f, "%lld channels and %lld filters of %lld do not give %lld",
                            (long long)x.c, (long long)w.n, (long long)w.c, (long long)y.c);
    if (x.type != y.type) return double_wrong(f, "x and y have different types");
    if (w.type != x.type &&
        !(kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR &&
          w.type == DOUBLE_F32))
        return double_wrong(f, "the filter has another type than x");
    if (value_of<cudnnDataType_t>(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT)
        return double_wrong(f, "sums are not float32");
    if (value_of<cudnnConvolutionMode_t>(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE) !=
        CUDNN_CROSS_CORRELATION)
        return double_wrong(f, "the filter is mirrored: not a cross-correlation");
    for (int d = 0; d < 3; d++) stride[d] = dilation[d] = 1, before[d] = 0;
    for (int i = 0; i < x.dims; i++) {
        const int d = 3 - x.dims + i;
        stride[d] = number(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i);
        dilation[d] = number(window, CUDNN_ATTR_CONVOLUTION_DILATIONS, i);
        before[d] = number(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i);
        const int64_t after = number(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i);
        const int64_t room = x.place[d] + before[d] + after - (w.place[d] - 1) * dilation[d] - 1;
        if (stride[d] < 1 || dilation[d] < 1 || before[d] < 0 || after < 0 || room < 0 ||
            room / stride[d] + 1 != y.place[d])
            return double_wrong(f, "dim %d of y is %lld, and the window gives %lld", i,
                                (long long)y.place[d],
                                (long long)(room < 0 ? 0 : room / stride[d] + 1));
    }
    return true;
}

/* ---- computed ---------------------------------------------------------------------------------
 */

std::vector<double> widened(const tensor &t, const void *at, bool tf32)
{
    std::vector<double> v((size_t)t.count());
    for (int64_t i = 0; i < t.count(); i++) {
        const double x = double_load(at, i, t.type);
        v[(size_t)i] = tf32 ? double_tf32(x) : x;
    }
    return v;
}

/* Calls f(x + .., w + .., y + ..) for each filter, place and tap, with elements of the first
 * channel. */
template <class F> void each_tap(const convolution &v, F f)
{
    const tensor &x = v.x, &w = v.w, &y = v.y;
    const int64_t per_group = w.n / (x.c / w.c);
    for (int64_t n = 0; n < y.n; n++)
        for (int64_t o = 0; o < y.places; o++) {
            const int64_t out[] = { o / (y.place[1] * y.place[2]), o / y.place[2] % y.place[1],
                                    o % y.place[2] };
            for (int64_t t = 0; t < w.places; t++) {
                const int64_t tap[] = { t / (w.place[1] * w.place[2]), t / w.place[2] % w.place[1],
                                        t % w.place[2] };
                int64_t in = 0;
                bool inside = true;
                for (int d = 0; d < 3; d++) {
                    const int64_t i = out[d] * v.stride[d] + tap[d] * v.dilation[d] - v.before[d];
                    inside = inside && i >= 0 && i < x.place[d];
                    in = in * x.place[d] + i;
                }
                for (int64_t k = 0; inside && k < w.n; k++)
                    f((n * x.places + in) * x.c + k / per_group * w.c, (k * w.places + t) * w.c,
                      (n * y.places + o) * y.c + k);
            }
        }
}

int64_t runs;

void compute(const convolution &v, bool tf32, void *const at[3])
{
    const bool forward = v.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
    const bool data = v.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    const tensor &to = v.result();
    const int64_t c = v.w.c;
    std::vector<double> x, w, y, sum((size_t)to.count(), 0.0);
    if (forward || !data) x = widened(v.x, at[0], tf32);
    if (forward || data) w = widened(v.w, at[1], tf32);
    if (!forward) y = widened(v.y, at[2], tf32);
    each_tap(v, [&](int64_t i, int64_t f, int64_t o) {
        if (forward) {
            double dot = 0;
            for (int64_t e = 0; e < c; e++) dot += x[(size_t)(i + e)] * w[(size_t)(f + e)];
            sum[(size_t)o] += dot;
        } else if (data) {
            for (int64_t e = 0; e < c; e++)
                sum[(size_t)(i + e)] += y[(size_t)o] * w[(size_t)(f + e)];
        } else {
            for (int64_t e = 0; e < c; e++)
                sum[(size_t)(f + e)] += y[(size_t)o] * x[(size_t)(i + e)];
        }
    });
    void *out = forward ? at[2] : data ? at[0] : at[1];
    for (int64_t i = 0; i < to.count(); i++) {
        double value = (double)v.alpha * sum[(size_t)i];
        if (v.beta != 0) value += (double)v.beta * double_load(out, i, to.type);
        double_store(out, i, to.type, value);
    }
    emu_mark(out, to.bytes(), true, true);
}

/* ---- descriptors ------------------------------------------------------------------------------
 */

bool is_operation(const node *n)
{
    return n->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
           n->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
           n->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

bool has_all(const char *f, const node *n)
{
    for (const rule &r : rules)
        if (r.of == n->type && !n->has.count(r.name))
            return double_wrong(f, "an attribute is missing (the double's number %d)", r.name);
    return true;
}

/* The operation of a finished graph. */
const node *operation_of(const node *graph)
{
    return child(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
}

cudnnStatus_t finish_plan(const char *f, const node *n)
{
    const node *config = child(n, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    convolution v;
    if (!is_finished(f, "the configuration", config) ||
        !is_finished(f, "the graph", config->graph) || !v.is(f, operation_of(config->graph)))
        return CUDNN_STATUS_BAD_PARAM;
    if (config->engine == REFUSING) return CUDNN_STATUS_NOT_SUPPORTED;
    if (config->engine == CHANGING) {
        double_wrong(f, "an engine whose bits change from run to run");
        return CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t finish(const char *f, const node *n)
{
    tensor t;
    convolution v;
    if (n->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        double_loads();
        return finish_plan(f, n);
    }
    if (n->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && !tensor_of(f, n, &t))
        return CUDNN_STATUS_BAD_PARAM;
    if (is_operation(n) && !v.is(f, n)) return CUDNN_STATUS_BAD_PARAM;
    if (n->type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR &&
        !is_finished(f, "the operation", operation_of(n)))
        return CUDNN_STATUS_BAD_PARAM;
    if (n->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
        !is_finished(f, "the graph", child(n, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)))
        return CUDNN_STATUS_BAD_PARAM;
    return CUDNN_STATUS_SUCCESS;
}

/* Fills the configurations that the caller has made. */
cudnnStatus_t propose(const char *f, const node *heuristics, int64_t wanted, int64_t *count,
                      void *values)
{
    const bool first = value_of<cudnnBackendHeurMode_t>(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE) ==
                       CUDNN_HEUR_MODE_A;
    *count = 0;
    for (int e = first ? 0 : (int)PLAIN; e < (first ? (int)PLAIN : (int)ENGINES); e++) {
        node *config;
        if (*count >= wanted || double_lacks(CUDA_DOUBLE_NO_ALGORITHM)) break;
        memcpy(&config, static_cast<char *>(values) + 8 * *count, sizeof config);
        if (!is_live(f, "a configuration", config)) return CUDNN_STATUS_BAD_PARAM;
        config->engine = e;
        config->graph = child(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
        config->finished = true;
        ++*count;
    }
    return CUDNN_STATUS_SUCCESS;
}

template <class T> void give(int64_t *count, void *values, int64_t wanted, std::vector<T> all)
{
    *count = (int64_t)all.size();
    for (size_t i = 0; i < all.size() && (int64_t)i < wanted; i++)
        memcpy(static_cast<char *>(values) + i * sizeof(T), &all[i], sizeof(T));
}

std::vector<cudnnBackendNumericalNote_t> notes_of(int engine)
{
    if (engine == CHANGING) return { CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC };
    if (engine == TENSOR_CORES)
        return { CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS };
    return { CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP };
}

struct execution {
    const char *f;
    const node *plan, *pack;
    convolution v;
    void *at[3]; /* x, w, y */
    void *workspace;
    int engine;

    bool find_pointers()
    {
        workspace = value_of<void *>(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
        const tensor *const all[] = { &v.x, &v.w, &v.y };
        for (int k = 0; k < 3; k++) {
            at[k] = nullptr;
            for (int i = 0; i < 3; i++)
                if (number(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, i) == all[k]->id)
                    at[k] = value_of<void *>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, i);
            if (!at[k]) return double_wrong(f, "no pointer for tensor %lld", (long long)all[k]->id);
        }
        return true;
    }

    bool memory_is_right()
    {
        static const char *const names[] = { "x", "w", "y" };
        const tensor *const all[] = { &v.x, &v.w, &v.y };
        int to = 0;
        while (all[to] != &v.result()) to++;
        for (int k = 0; k < 3; k++) {
            if (!double_aligned(f, names[k], at[k], (size_t)all[k]->aligned)) return false;
            if ((k != to || v.beta != 0) && !double_reads(f, names[k], at[k], all[k]->bytes()))
                return false;
            if (k == to && !double_writes(f, names[k], at[k], all[k]->bytes())) return false;
            if (k != to && !double_apart(f, names[to], at[to], all[to]->bytes(), names[k], at[k],
                                         all[k]->bytes()))
                return false;
            if (!double_apart(f, "the workspace", workspace, NEEDS, names[k], at[k],
                              all[k]->bytes()))
                return false;
        }
        return double_workspace(f, workspace, NEEDS, NEEDS);
    }

    bool run()
    {
        if (!memory_is_right()) return false;
        compute(v, engine == TENSOR_CORES && v.x.type == DOUBLE_F32, at);
        runs++;
        return true;
    }
};
} // namespace

extern "C" {
cudnnStatus_t cudnnCreate(cudnnHandle_t *out)
{
    if (!double_begins("cudnnCreate", true)) return CUDNN_STATUS_INTERNAL_ERROR;
    static cudnnContext all[64];
    static int n;
    *out = &all[n++ % 64];
    **out = { true, nullptr };
    double_made(1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    if (!handle->live) {
        double_wrong("cudnnDestroy", "the handle was destroyed before");
        return CUDNN_STATUS_BAD_PARAM;
    }
    handle->live = false;
    double_made(-1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (!double_begins("cudnnSetStream", true)) return CUDNN_STATUS_INTERNAL_ERROR;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t s)
{
    return s == CUDNN_STATUS_SUCCESS ? "success" : "the double says no";
}

void cudnnGetLastErrorString(char *out, size_t size)
{
    if (size) *out = 0;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *out)
{
    if (!double_begins("cudnnBackendCreateDescriptor", true)) return CUDNN_STATUS_INTERNAL_ERROR;
    node *n = new node();
    n->type = type;
    n->live = true;
    nodes->push_back(n);
    double_made(1);
    *out = n;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    node *n = static_cast<node *>(d);
    if (!is_live("cudnnBackendDestroyDescriptor", "what is destroyed", n))
        return CUDNN_STATUS_BAD_PARAM;
    n->live = false;
    n->has.clear();
    double_made(-1);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void *values)
{
    const char *f = "cudnnBackendSetAttribute";
    node *n = static_cast<node *>(d);
    if (!double_begins(f, true)) return CUDNN_STATUS_INTERNAL_ERROR;
    if (!is_live(f, "the descriptor", n)) return CUDNN_STATUS_BAD_PARAM;
    const rule *r = rule_of(n, name);
    const char *why = n->finished                           ? "is changed after it was finalized"
                      : !r                                  ? "has no such attribute"
                      : r->type != type                     ? "has it of another type"
                      : count < r->least || count > r->most ? "has another number of values"
                                                            : nullptr;
    if (why) {
        double_wrong(f, "the descriptor %s (attribute %d)", why, name);
        return CUDNN_STATUS_BAD_PARAM;
    }
    const char *from = static_cast<const char *>(values);
    n->has[name] = { type, count, std::vector<char>(from, from + count * (int64_t)size_of(type)) };
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t wanted,
                                       int64_t *count, void *values)
{
    const char *f = "cudnnBackendGetAttribute";
    node *n = static_cast<node *>(d), *engine;
    if (!double_begins(f, true)) return CUDNN_STATUS_INTERNAL_ERROR;
    if (n && n->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && n->engine >= 0) n->finished = true;
    if (!is_finished(f, "the descriptor", n)) return CUDNN_STATUS_BAD_PARAM;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return propose(f, n, wanted, count, values);
    if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        memcpy(&engine, values, sizeof engine);
        if (!is_live(f, "the engine", engine)) return CUDNN_STATUS_BAD_PARAM;
        engine->engine = n->engine;
        *count = 1;
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE) {
        give(count, values, wanted, notes_of(n->engine));
        return CUDNN_STATUS_SUCCESS;
    }
    if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64) {
        const node *config = child(n, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        give(count, values, wanted,
             std::vector<int64_t>{ config->engine == GREEDY ? INT64_C(1) << 40 : (int64_t)NEEDS });
        return CUDNN_STATUS_SUCCESS;
    }
    double_wrong(f, "attribute %d cannot be asked for like this", name);
    return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d)
{
    const char *f = "cudnnBackendFinalize";
    node *n = static_cast<node *>(d);
    if (!double_begins(f, true)) {
        if (n->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) double_forgives();
        return CUDNN_STATUS_INTERNAL_ERROR;
    }
    if (!is_live(f, "the descriptor", n) || !has_all(f, n)) return CUDNN_STATUS_BAD_PARAM;
    const cudnnStatus_t s = finish(f, n);
    n->finished = s == CUDNN_STATUS_SUCCESS;
    return s;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    execution e = {};
    e.f = "cudnnBackendExecute";
    e.plan = static_cast<node *>(plan);
    e.pack = static_cast<node *>(pack);
    if (!double_begins(e.f, true) || !emu_enqueue() || double_is_dead(double_device()))
        return CUDNN_STATUS_EXECUTION_FAILED;
    if (!handle || !handle->live) {
        double_wrong(e.f, "the handle was destroyed before");
        return CUDNN_STATUS_BAD_PARAM;
    }
    if (!double_stream(e.f, handle->stream) || !is_finished(e.f, "the plan", e.plan) ||
        !is_finished(e.f, "the pack of pointers", e.pack))
        return CUDNN_STATUS_BAD_PARAM;
    const node *config = child(e.plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!is_finished(e.f, "the configuration", config) ||
        !is_finished(e.f, "the graph", config->graph) ||
        !e.v.is(e.f, operation_of(config->graph)) || !e.find_pointers())
        return CUDNN_STATUS_BAD_PARAM;
    e.engine = config->engine;
    double_give(handle->stream, [e]() mutable { e.run(); });
    return CUDNN_STATUS_SUCCESS;
}
}

const cuda_dnn *keel_cuda_dnn(keel_device *d)
{
#define FUNCTION(name) .name = double_function<::name>::call,
    static const cudnn_functions functions = { CUDNN_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    static cudnnContext handle = { true, emu_only_stream() };
    static const cuda_dnn one = { &functions, &handle, CUDA_DNN_WORKSPACE };
    const emu_turn turn;
    cudaStream_t stream;
    if (double_lacks(CUDA_DOUBLE_NO_CUDNN)) return nullptr;
    cuda_libraries *l = double_opens(d, KEEL_OWN_CONVOLUTIONS, &stream);
    if (!l) return &one;
    if (!l->dnn.of) {
        static auto &all = *new std::vector<cudnnContext *>; /* a lost GPU's stay for ever */
        all.push_back(new cudnnContext{ true, stream });
        l->dnn = { &functions, all.back(), CUDA_DNN_WORKSPACE };
    }
    return &l->dnn;
}

void double_closes_cudnn(cuda_libraries *l)
{
    if (l->dnn.handle) l->dnn.handle->live = false;
    l->dnn = {};
}

int64_t cuda_double_convolutions(void)
{
    return runs;
}
