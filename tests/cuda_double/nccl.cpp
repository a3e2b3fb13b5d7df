/* A double of NCCL: see double.h. Its ranks are communicators of one process. A sum is made when
 * the streams of all ranks have come to it; until then they do not go on. Communicators do not
 * block: they are made when somebody has asked twice how far they are. */
#include "double.h"
#include "device/cuda/sums.h"
#include "nccl_words.h"
#include <memory>
#include <stdio.h>
#include <string.h>
#include <vector>

namespace
{
struct asked { /* a sum of a rank */
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    bool waits, done; /* its stream has come to it; it is made */
};
typedef std::shared_ptr<asked> shared_sum;
enum state { MAKING, WORKING, ENDING, ENDED, GONE };
} // namespace

struct ncclComm {
    int id, ranks, rank, device;
    state is;
    int polls, given; /* given: sums, of which so many are not made */
    std::vector<shared_sum> waits;
};

namespace
{
std::vector<ncclComm *> &all = *new std::vector<ncclComm *>; /* addresses are not used again */
int ids;
thread_local int depth;
bool broken;
int64_t sums;

ncclResult_t wrong_usage(const char *f, const char *what)
{
    double_wrong(f, "%s", what);
    return ncclInvalidUsage;
}

bool is_alive(const char *f, ncclComm_t c)
{
    for (const ncclComm *x : all)
        if (x == c && c->is != GONE) return true;
    return double_wrong(f, "the communicator was destroyed or aborted, or was never made");
}

size_t size_of(ncclDataType_t t)
{
    return t == ncclFloat64 ? 8 : 4;
}

std::vector<ncclComm *> ranks_of(int id)
{
    std::vector<ncclComm *> found;
    for (ncclComm *c : all)
        if (c->id == id && c->is != GONE) found.push_back(c);
    return found;
}

template <class T> void add_up(const std::vector<ncclComm *> &of)
{
    const size_t n = of[0]->waits[0]->count;
    std::vector<T> sum(n, 0);
    for (const ncclComm *c : of)
        for (size_t i = 0; i < n; i++) sum[i] += static_cast<const T *>(c->waits[0]->send)[i];
    for (const ncclComm *c : of) {
        memcpy(c->waits[0]->receive, sum.data(), n * sizeof(T));
        emu_mark(c->waits[0]->receive, n * sizeof(T), true, true);
    }
}

/* What a rank brings is its own GPU's, and written. */
bool is_there(const ncclComm *c)
{
    const char *f = "ncclAllReduce";
    const asked &a = *c->waits[0];
    const size_t bytes = a.count * size_of(a.type);
    emu.gpu = c->device;
    return double_reads(f, "what is sent", a.send, bytes) &&
           double_writes(f, "what is received", a.receive, bytes);
}

/* Makes the sums for which all ranks have come. */
void go_on(int id)
{
    const std::vector<ncclComm *> of = ranks_of(id);
    for (;;) {
        if (broken || of.empty() || (int)of.size() < of[0]->ranks) return;
        for (const ncclComm *c : of)
            if (c->waits.empty()) return;
        const asked &first = *of[0]->waits[0];
        for (const ncclComm *c : of)
            if (c->waits[0]->count != first.count || c->waits[0]->type != first.type) {
                double_wrong("ncclAllReduce",
                             "rank %d adds %zu numbers of type %d where rank %d "
                             "adds %zu of type %d: the order of calls differs",
                             c->rank, c->waits[0]->count, (int)c->waits[0]->type, of[0]->rank,
                             first.count, (int)first.type);
                return;
            }
        for (const ncclComm *c : of)
            if (!is_there(c)) return;
        if (first.type == ncclFloat64)
            add_up<double>(of);
        else
            add_up<float>(of);
        sums++;
        for (ncclComm *c : of) {
            c->waits[0]->done = true;
            c->waits.erase(c->waits.begin());
            c->given--;
        }
    }
}

void end(ncclComm_t c)
{
    c->is = GONE;
    c->waits.clear();
    double_made(-1);
    double_takes(c->device, -CUDA_DOUBLE_NCCL);
    double_goes_on(); /* its sums end, as they are */
}
} // namespace

extern "C" {
const char *ncclGetErrorString(ncclResult_t r)
{
    return r == ncclSuccess       ? "no error"
           : r == ncclRemoteError ? "remote process exited or there was a network error"
                                  : "the double says no";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
    if (!double_begins("ncclGetUniqueId", true)) return ncclSystemError;
    snprintf(out->internal, sizeof out->internal, "double %d", ++ids);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart()
{
    if (!double_begins("ncclGroupStart", true)) return ncclInternalError;
    depth++;
    return ncclSuccess;
}

/* A group is closed also after a call in it that failed, and if closing it fails. */
ncclResult_t ncclGroupEnd()
{
    if (depth == 0) return wrong_usage("ncclGroupEnd", "no group was begun");
    depth--;
    double_forgives();
    if (!double_begins("ncclGroupEnd", true)) return ncclInternalError;
    for (const ncclComm *c : all)
        if (c->is == MAKING && depth == 0) return ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    const char *f = "ncclCommInitRankConfig";
    int number = 0;
    if (!double_begins(f, true)) return ncclSystemError;
    if (sscanf(id.internal, "double %d", &number) != 1)
        return wrong_usage(f, "the id is not of ncclGetUniqueId");
    if (!config || config->blocking != 0)
        return wrong_usage(f, "the communicator blocks, so nobody could end a call that waits");
    if (rank < 0 || rank >= ranks) return wrong_usage(f, "there is no such rank");
    if (depth == 0 && ranks > 1)
        return wrong_usage(
            f, "a thread with several ranks makes them in one group, or waits for ever");
    for (const ncclComm *c : ranks_of(number)) {
        if (c->rank == rank) return wrong_usage(f, "the rank is there already");
        if (c->ranks != ranks) return wrong_usage(f, "the ranks do not agree on their number");
        if (c->device == double_device()) return wrong_usage(f, "two ranks have one GPU");
    }
    all.push_back(*out = new ncclComm{ number, ranks, rank, double_device(), MAKING, 0, 0, {} });
    double_made(1);
    double_takes(double_device(), CUDA_DOUBLE_NCCL);
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *out)
{
    const char *f = "ncclCommGetAsyncError";
    if (!is_alive(f, c)) return ncclInvalidArgument;
    if (!double_begins(f, true)) return ncclInternalError;
    if (c->is == MAKING && (int)ranks_of(c->id).size() == c->ranks && ++c->polls > 1)
        c->is = WORKING;
    if (c->is == ENDING) c->is = ENDED;
    *out = broken ? ncclRemoteError : c->is == MAKING ? ncclInProgress : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t c, cudaStream_t stream)
{
    const char *f = "ncclAllReduce";
    if (!is_alive(f, c)) return ncclInvalidArgument;
    if (!double_begins(f, true) || double_is_dead(c->device)) return ncclUnhandledCudaError;
    if (c->is != WORKING)
        return wrong_usage(f, c->is == MAKING ? "the communicator is not made yet (ncclInProgress)"
                                              : "the communicator is at its end");
    if (op != ncclSum) return wrong_usage(f, "gradients are added, and nothing else");
    if (type != ncclFloat32 && type != ncclFloat64)
        return wrong_usage(f, "gradients are float32 or float64");
    if (double_device() != c->device)
        return wrong_usage(f, "the thread's GPU is not that of the communicator");
    if (emu_knows_stream(stream) && double_device_of(stream) != c->device)
        return wrong_usage(f, "the stream is of another GPU than the communicator");
    if (!double_stream(f, stream)) return ncclInvalidArgument;
    const size_t bytes = count * size_of(type);
    if (!double_aligned(f, "what is sent", send, size_of(type))) return ncclInvalidArgument;
    if (send != receive &&
        !double_apart(f, "what is sent", send, bytes, "what is received", receive, bytes))
        return ncclInvalidArgument;
    const shared_sum sum =
        std::make_shared<asked>(asked{ send, receive, count, type, false, false });
    c->given++;
    double_give_waiting(stream, [=] {
        if (!sum->waits && c->is != GONE) {
            sum->waits = true;
            c->waits.push_back(sum);
            go_on(c->id);
        }
        return sum->done || c->is == GONE;
    });
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t c)
{
    const char *f = "ncclCommFinalize";
    if (!is_alive(f, c)) return ncclInvalidArgument;
    if (!double_begins(f, true)) return ncclInternalError;
    if (c->is != WORKING) return wrong_usage(f, "the communicator does not work");
    if (c->given > 0) return wrong_usage(f, "a sum still waits for other ranks");
    c->is = ENDING;
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t c)
{
    const char *f = "ncclCommDestroy";
    if (!is_alive(f, c)) return ncclInvalidArgument;
    if (c->is != ENDED)
        return wrong_usage(f, "a communicator that does not block is finalized before");
    end(c);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c)
{
    if (!is_alive("ncclCommAbort", c)) return ncclInvalidArgument;
    double_forgives();
    end(c);
    return ncclSuccess;
}
}

const nccl_functions *keel_cuda_nccl(char *why, size_t size)
{
#define FUNCTION(name) .name = double_function<::name>::call,
    static const nccl_functions functions = { NCCL_FUNCTIONS(FUNCTION) };
#undef FUNCTION
    snprintf(why, size, "libnccl.so.2 is not there");
    return double_lacks(CUDA_DOUBLE_NO_NCCL) ? nullptr : &functions;
}

void cuda_double_breaks_links(bool breaks)
{
    broken = breaks;
}

int64_t cuda_double_sums(void)
{
    return sums;
}
