/* Wrong calls of NCCL, each a right one with one thing changed. */
#include "cuda_double.h"
#include "device/cuda/sums.h"
#include "emulator.h"
#include "machine.h"
#include <vector>

namespace
{
enum { RANKS = 2, COUNT = 6 };

/* Two ranks add up six numbers of each. */
struct trial {
    ncclUniqueId id = {};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm[RANKS] = {};
    cudaStream_t stream[RANKS] = {};
    float *at[RANKS] = {};
    int rank[RANKS] = { 0, 1 }, device[RANKS] = { 0, 1 };
    size_t count[RANKS] = { COUNT, COUNT };
    ncclDataType_t type[RANKS] = { ncclFloat32, ncclFloat32 };
    ncclRedOp_t op = ncclSum;
    bool grouped = true, settles = true;

    trial()
    {
        const std::vector<float> ones(COUNT, 1.0f);
        config.blocking = 0;
        ncclGetUniqueId(&id);
        for (int r = 0; r < RANKS; r++) {
            cudaSetDevice(r);
            cudaStreamCreateWithFlags(&stream[r], cudaStreamNonBlocking);
            at[r] = static_cast<float *>(emu_allocate_on(r, COUNT * 4, "numbers"));
            emu_copy_in(at[r], ones.data(), COUNT * 4);
        }
    }

    void make()
    {
        if (grouped) ncclGroupStart();
        for (int r = 0; r < RANKS; r++) {
            cudaSetDevice(device[r]);
            ncclCommInitRankConfig(&comm[r], RANKS, id, rank[r], &config);
        }
        if (grouped) ncclGroupEnd();
        for (int i = 0; i < 2 * RANKS && settles; i++) {
            ncclResult_t state;
            if (comm[i % RANKS]) ncclCommGetAsyncError(comm[i % RANKS], &state);
        }
    }

    void sum(int r)
    {
        cudaSetDevice(device[r]);
        ncclAllReduce(at[r], at[r], count[r], type[r], op, comm[r], stream[r]);
    }

    void all()
    {
        make();
        for (int r = 0; r < RANKS; r++) sum(r);
    }

    ~trial()
    {
        for (int r = 0; r < RANKS; r++) {
            if (comm[r]) ncclCommAbort(comm[r]);
            if (stream[r]) cudaStreamDestroy(stream[r]);
        }
        cudaSetDevice(0);
    }
};

void right()
{
    trial t;
    ncclResult_t state;
    t.all();
    for (int r = 0; r < RANKS; r++) ncclCommFinalize(t.comm[r]);
    for (int r = 0; r < RANKS; r++) ncclCommGetAsyncError(t.comm[r], &state);
    for (int r = 0; r < RANKS; r++) ncclCommDestroy(t.comm[r]), t.comm[r] = nullptr;
}

void blocks()
{
    trial t;
    t.config.blocking = 1;
    t.make();
}

void one_by_one()
{
    trial t;
    t.grouped = false;
    t.make();
}

void rank_twice()
{
    trial t;
    t.rank[1] = 0;
    t.make();
}

void one_gpu()
{
    trial t;
    t.device[1] = 0;
    t.make();
}

void too_early()
{
    trial t;
    t.settles = false;
    t.all();
}

void other_count()
{
    trial t;
    t.count[1] = COUNT - 1;
    t.all();
}

void other_type()
{
    trial t;
    t.type[1] = ncclFloat64;
    t.count[0] = t.count[1] = COUNT / 2;
    t.all();
}

void other_order()
{
    trial t;
    t.make();
    for (int k = 0; k < 2; k++)
        for (int r = 0; r < RANKS; r++) {
            t.count[r] = k == r ? 3 : 5;
            t.sum(r);
        }
}

void others_stream()
{
    trial t;
    t.make();
    std::swap(t.stream[0], t.stream[1]);
    t.sum(0);
}

void others_device()
{
    trial t;
    t.make();
    t.device[0] = 1;
    t.sum(0);
}

void no_stream()
{
    trial t;
    t.make();
    cudaStreamDestroy(t.stream[0]);
    t.sum(0);
    t.stream[0] = nullptr;
}

void too_many()
{
    trial t;
    t.count[0] = t.count[1] = COUNT + 1;
    t.all();
}

void overlaps()
{
    trial t;
    t.make();
    cudaSetDevice(0);
    ncclAllReduce(t.at[0], t.at[0] + 1, COUNT - 1, ncclFloat32, ncclSum, t.comm[0], t.stream[0]);
}

void multiplies()
{
    trial t;
    t.op = ncclProd;
    t.all();
}

void halves()
{
    trial t;
    t.type[0] = t.type[1] = ncclFloat16;
    t.all();
}

void after_abort()
{
    trial t;
    t.make();
    ncclCommAbort(t.comm[0]);
    t.sum(0);
    t.comm[0] = nullptr;
}

void not_finalized()
{
    trial t;
    t.all();
    ncclCommDestroy(t.comm[0]);
}

void finalizes_early()
{
    trial t;
    t.make();
    t.sum(0);
    ncclCommFinalize(t.comm[0]);
}

void destroys_a_stream_that_waits()
{
    trial t;
    t.make();
    t.sum(0);
    cudaStreamDestroy(t.stream[0]);
    t.stream[0] = nullptr;
}

void sums_at_the_end()
{
    trial t;
    t.make();
    ncclCommFinalize(t.comm[0]);
    t.sum(0);
}

void no_group()
{
    ncclGroupEnd();
}
} // namespace

const cuda_misuse nccl_misuses[] = {
    { "a right sum", right, nullptr },
    { "communicators that block", blocks, "the communicator blocks" },
    { "ranks are made one by one", one_by_one, "makes them in one group" },
    { "a rank twice", rank_twice, "the rank is there already" },
    { "two ranks on one GPU", one_gpu, "two ranks have one GPU" },
    { "a sum before all is made", too_early, "not made yet (ncclInProgress)" },
    { "another count on one rank", other_count, "rank 1 adds 5 numbers of type 7 where rank 0" },
    { "another type on one rank", other_type, "adds 3 numbers of type 8 where rank 0" },
    { "another order of two sums", other_order, "the order of calls differs" },
    { "a stream of another GPU", others_stream, "the stream is of another GPU" },
    { "another GPU is the thread's", others_device, "the thread's GPU is not that of" },
    { "a stream that is gone", no_stream, "the stream is not that of the call" },
    { "more numbers than there are", too_many, "what is sent is read" },
    { "sent and received overlap", overlaps, "what is sent and what is received overlap" },
    { "a product", multiplies, "gradients are added, and nothing else" },
    { "float16", halves, "gradients are float32 or float64" },
    { "a sum after an abort", after_abort, "was destroyed or aborted" },
    { "an end that was not announced", not_finalized, "is finalized before" },
    { "an end while a sum waits", finalizes_early, "a sum still waits for other ranks" },
    { "a stream is destroyed while its sum waits", destroys_a_stream_that_waits,
      "the stream is not at its end" },
    { "a sum behind the end", sums_at_the_end, "the communicator is at its end" },
    { "a group that was not begun", no_group, "no group was begun" },
    { nullptr, nullptr, nullptr }
};
