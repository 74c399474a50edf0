/* Recorded operations are a CUDA graph, captured from the stream. What cannot be captured runs plainly instead. Branches are
 * two streams that part and meet at events, which a graph keeps as its edges. */
#include "models/cuda/cuda.h"

/* While the stream is captured, no operation is carried out. */
static bool capture(struct cuda *cuda, struct recording *recording, recorded_body body, void *context,
                    cudaGraphExec_t *executable)
{
    cudaGraph_t graph = NULL;
    cudaError_t result = cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal);
    status ran = OK;
    if (result == cudaSuccess) {
        cuda->recording = true;
        ran = body(context, &recording->refused);
        cuda->recording = false;
        result = cudaStreamEndCapture(cuda->stream, &graph);
    }
    if (result == cudaSuccess && ran == OK)
        result = cudaGraphInstantiate(executable, graph, 0);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    cudaGetLastError(); /* the next operation must not report a failed capture */
    if (ran == OK)
        cuda_done(result, "capturing", &recording->refused);
    return result == cudaSuccess && ran == OK;
}

status cuda_record(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                   struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch), side = arena_mark(&cuda->side.scratch);
    cudaGraphExec_t executable = NULL;
    *recording = {};
    cuda_copies_update(cuda);
    if (capture(cuda, recording, body, context, &executable)) {
        recording->owner = executable;
        return cuda_replay(backend, recording, error);
    }
    arena_release(&cuda->scratch, mark);
    arena_release(&cuda->side.scratch, side);
    return body(context, error);
}

status cuda_replay(struct backend *backend, const struct recording *recording, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    cuda_copies_update(cuda);
    return cuda_done(cudaGraphLaunch((cudaGraphExec_t)recording->owner, cuda->stream), "a recorded step", error);
}

void cuda_recording_destroy(struct backend *backend, struct recording *recording)
{
    if (recording->owner == NULL)
        return;
    cudaStreamSynchronize(cuda_of(backend)->stream); /* it may still be carried out */
    cudaGraphExecDestroy((cudaGraphExec_t)recording->owner);
    recording->owner = NULL;
}

/* --- Branches --- */

static void change_sides(struct cuda *cuda)
{
    cudaStream_t stream = cuda->stream;
    struct arena scratch = cuda->scratch;
    cuda->stream = cuda->side.stream;
    cuda->scratch = cuda->side.scratch;
    cuda->side.stream = stream;
    cuda->side.scratch = scratch;
    cuda->on_side = !cuda->on_side;
}

/* The streams meet also after a failure: a capture ends in one stream alone. */
status cuda_branches(struct backend *backend, const struct branches *branches, struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    const auto *main = &branches->list[0], *side = &branches->list[1];
    assert(!cuda->on_side);
    cudaError_t result = cudaEventRecord(cuda->side.forked, cuda->stream);
    if (result == cudaSuccess)
        result = cudaStreamWaitEvent(cuda->side.stream, cuda->side.forked, 0);
    TRY(cuda_done(result, "parting branches", error));
    status ran = main->body(main->context, error);
    change_sides(cuda);
    NEXT(ran, side->body(side->context, error));
    change_sides(cuda);
    result = cudaEventRecord(cuda->side.joined, cuda->side.stream);
    if (result == cudaSuccess)
        result = cudaStreamWaitEvent(cuda->stream, cuda->side.joined, 0);
    return ran == OK ? cuda_done(result, "joining branches", error) : ran;
}
