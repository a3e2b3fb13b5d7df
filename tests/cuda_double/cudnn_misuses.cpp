/* Wrong calls of cuDNN, each a right one with one thing changed. */
#include "cuda_double.h"
#include "device/cuda/libraries.h"
#include "emulator.h"
#include "machine.h"
#include <vector>

namespace
{
typedef cudnnBackendDescriptor_t descriptor;

/* y[2, 3, 4, 6] = a 3x3 window over x[2, 5, 6, 4], without pads. */
struct trial {
    cudnnHandle_t handle = nullptr;
    std::vector<descriptor> made;
    descriptor x = nullptr, w = nullptr, y = nullptr, window = nullptr, operation = nullptr,
               graph = nullptr, config = nullptr, plan = nullptr, pack = nullptr;
    alignas(16) int64_t size_x[4] = { 2, 4, 5, 6 };
    int64_t size_w[4] = { 6, 4, 3, 3 }, size_y[4] = { 2, 6, 3, 4 };
    int64_t step_x[4] = { 120, 1, 24, 4 }, step_w[4] = { 36, 1, 12, 4 },
            step_y[4] = { 72, 1, 24, 6 };
    int64_t pads[2] = { 0, 0 }, ones[2] = { 1, 1 }, dims = 2, aligned = 16;
    cudnnDataType_t sums = CUDNN_DATA_FLOAT, type_w = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    float beta = 0;
    cudnnBackendHeurMode_t way = CUDNN_HEUR_MODE_FALLBACK;
    int choice = 0;
    void *at[3] = {}, *workspace = nullptr;
    int64_t ids[3] = { 1, 2, 3 };
    cudaStream_t stream = emu_only_stream();

    static void *written(int64_t count, const char *name)
    {
        const std::vector<float> all((size_t)count, 1.0f);
        void *to = emu_allocate(count * 4, name);
        emu_copy_in(to, all.data(), count * 4);
        return to;
    }

    descriptor make(cudnnBackendDescriptorType_t type)
    {
        descriptor d = nullptr;
        cudnnBackendCreateDescriptor(type, &d);
        made.push_back(d);
        return d;
    }

    template <class V>
    void set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
             const V *values, int64_t n = 1)
    {
        cudnnBackendSetAttribute(d, name, type, n, values);
    }

    descriptor tensor(int64_t id, const int64_t *size, const int64_t *step, cudnnDataType_t type)
    {
        descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
        set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &id);
        set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
        set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &aligned);
        set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, size, 4);
        set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, step, 4);
        cudnnBackendFinalize(d);
        return d;
    }

    void open()
    {
        cudnnCreate(&handle);
        cudnnSetStream(handle, stream);
        if (at[0]) return;
        at[0] = written(240, "x");
        at[1] = written(216, "w");
        at[2] = emu_allocate(144 * 4, "y");
        workspace = emu_allocate(4096, "workspace");
    }

    void describe()
    {
        const float one = 1;
        x = tensor(1, size_x, step_x, CUDNN_DATA_FLOAT);
        w = tensor(2, size_w, step_w, type_w);
        y = tensor(3, size_y, step_y, CUDNN_DATA_FLOAT);
        window = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
        set(window, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, &sums);
        set(window, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, &mode);
        set(window, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, &dims);
        set(window, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, pads, 2);
        set(window, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, pads, 2);
        set(window, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, ones, 2);
        set(window, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, ones, 2);
        cudnnBackendFinalize(window);
        operation = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
        set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            &x);
        set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            &w);
        set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            &y);
        set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            CUDNN_TYPE_BACKEND_DESCRIPTOR, &window);
        set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, &one);
        set(operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, &beta);
    }

    void choose()
    {
        descriptor heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), config_of[4];
        int64_t n;
        cudnnBackendFinalize(operation);
        graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, &operation);
        set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle);
        cudnnBackendFinalize(graph);
        set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            &graph);
        set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &way);
        cudnnBackendFinalize(heuristics);
        for (descriptor &d : config_of) d = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 4, &n, config_of);
        config = config_of[choice];
        plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, &config);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &handle);
        cudnnBackendFinalize(plan);
    }

    void gather()
    {
        pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids, 3);
        set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, at, 3);
        set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &workspace);
        cudnnBackendFinalize(pack);
    }

    void run()
    {
        cudnnBackendExecute(handle, plan, pack);
    }

    ~trial()
    {
        for (descriptor d : made) cudnnBackendDestroyDescriptor(d);
        if (handle) cudnnDestroy(handle);
    }

    void destroy(descriptor d)
    {
        cudnnBackendDestroyDescriptor(d);
        std::erase(made, d);
    }
};
} // namespace

/* What is changed before anything is described, before the engine is chosen, before the pointers
 * are given, and before the run. */
#define CASE(what, first, second, third, fourth, says)                                             \
    {                                                                                              \
        what,                                                                                      \
            [] {                                                                                   \
                trial t;                                                                           \
                first;                                                                             \
                t.open();                                                                          \
                t.describe();                                                                      \
                second;                                                                            \
                t.choose();                                                                        \
                third;                                                                             \
                t.gather();                                                                        \
                fourth;                                                                            \
                t.run();                                                                           \
            },                                                                                     \
            says                                                                                   \
    }
#define DESCRIBED(what, change, says) CASE(what, change, (void)0, (void)0, (void)0, says)
#define GIVEN(what, change, says)     CASE(what, (void)0, (void)0, change, (void)0, says)

const cuda_misuse cudnn_misuses[] = {
    DESCRIBED("a right call", (void)0, nullptr),
    DESCRIBED("pads that do not give y", t.pads[0] = 1, "dim 0 of y is 3, and the window gives 5"),
    DESCRIBED("a stride that does not give y", t.ones[1] = 2,
              "dim 1 of y is 4, and the window gives 1"),
    DESCRIBED("filters of other channels", t.size_w[1] = 3, "not lie channels last"),
    DESCRIBED("filters in Keras's order", (t.step_w[0] = 1, t.step_w[1] = 6),
              "does not lie channels last"),
    DESCRIBED("channels first", (t.step_x[1] = 30, t.step_x[2] = 6, t.step_x[3] = 1),
              "does not lie channels last"),
    DESCRIBED("y of another number of filters",
              (t.size_y[1] = 5, t.step_y[0] = 60, t.step_y[2] = 20, t.step_y[3] = 5),
              "6 filters of 4 do not give 5"),
    DESCRIBED("other rows of y", t.size_y[0] = 3, "x has 2 rows, and y 3"),
    DESCRIBED("a mirrored filter", t.mode = CUDNN_CONVOLUTION, "the filter is mirrored"),
    DESCRIBED("sums in bfloat16", t.sums = CUDNN_DATA_BFLOAT16, "sums are not float32"),
    DESCRIBED("a narrow filter beside float32", t.type_w = CUDNN_DATA_BFLOAT16,
              "the filter has another type"),
    DESCRIBED("an alignment of 3", t.aligned = 3, "aligned to 3 bytes"),
    DESCRIBED("another stream", t.stream = nullptr, "the stream is not that of the call"),
    DESCRIBED("an engine whose bits change", t.way = CUDNN_HEUR_MODE_A, "whose bits change"),
    CASE("an attribute after the end", (void)0, (void)0,
         t.set(t.x, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, t.ids), (void)0,
         "changed after it was finalized"),
    CASE("an attribute of another type", (void)0,
         t.set(t.operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_INT64, t.ids),
         (void)0, (void)0, "has it of another type"),
    CASE("an attribute of something else", (void)0,
         t.set(t.operation, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, t.ids), (void)0, (void)0,
         "has no such attribute"),
    CASE("two windows", (void)0,
         t.set(t.operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
               CUDNN_TYPE_BACKEND_DESCRIPTOR, t.at, 2),
         (void)0, (void)0, "has another number of values"),
    CASE("an operation without a window", (void)0,
         (t.operation = t.make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)), (void)0,
         (void)0, "an attribute is missing"),
    CASE("a tensor that was destroyed", (void)0, t.destroy(t.w), (void)0, (void)0,
         "w was destroyed before"),
    CASE("a configuration that was destroyed", (void)0, (void)0, t.destroy(t.config), (void)0,
         "the configuration was destroyed before"),
    CASE("a plan that is destroyed twice", (void)0, (void)0, cudnnBackendDestroyDescriptor(t.plan);
         t.destroy(t.plan), (void)0, "what is destroyed was destroyed before"),
    CASE("a handle that was destroyed", (void)0, (void)0, (void)0,
         (cudnnDestroy(t.handle), t.run(), t.handle = nullptr, void()),
         "the handle was destroyed before"),
    CASE("a call after a failure", (void)0, (void)0, (void)0, (cuda_double_fail_at(1), t.run()),
         "a call after one that failed"),
    GIVEN("a pointer for a tensor that is not there", t.ids[2] = 9, "no pointer for tensor 3"),
    GIVEN("x in the host's memory", t.at[0] = &t.size_x, "no memory of the device"),
    GIVEN("x that is not aligned", t.at[0] = static_cast<char *>(t.at[0]) + 4,
          "x is not aligned to the 16 bytes"),
    GIVEN("w that is too short", t.at[1] = static_cast<char *>(t.at[1]) + 16,
          "w is read: 864 bytes"),
    GIVEN("x that nobody has written", t.at[0] = emu_allocate(960, "fresh"),
          "has never been written"),
    GIVEN("y over x", t.at[2] = t.at[0], "y and x overlap"),
    GIVEN("a workspace in y", t.workspace = t.at[2], "the workspace and y overlap"),
    GIVEN("a workspace that is too small", t.workspace = emu_allocate(2999, "small"),
          "the workspace is written: 3000 bytes"),
    GIVEN("no workspace", t.workspace = nullptr, "the workspace is written"),
    DESCRIBED("an addition to what nobody has written", t.beta = 1, "y is read: 576 bytes"),
    { nullptr, nullptr, nullptr },
};
