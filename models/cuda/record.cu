/* Recorded operations are a CUDA graph, captured from the stream. What cannot be captured runs plainly instead. */
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
    if (ran == OK && result != cudaSuccess)
        cuda_failed(result, "capturing", &recording->refused);
    return result == cudaSuccess && ran == OK;
}

status cuda_record(struct backend *backend, struct recording *recording, recorded_body body, void *context,
                   struct error *error)
{
    struct cuda *cuda = cuda_of(backend);
    struct arena_mark mark = arena_mark(&cuda->scratch);
    cudaGraphExec_t executable = NULL;
    *recording = {};
    if (capture(cuda, recording, body, context, &executable)) {
        recording->owner = executable;
        return cuda_replay(backend, recording, error);
    }
    arena_release(&cuda->scratch, mark);
    return body(context, error);
}

status cuda_replay(struct backend *backend, const struct recording *recording, struct error *error)
{
    cudaError_t result = cudaGraphLaunch((cudaGraphExec_t)recording->owner, cuda_of(backend)->stream);
    return result == cudaSuccess ? OK : cuda_failed(result, "a recorded step", error);
}

void cuda_recording_destroy(struct backend *backend, struct recording *recording)
{
    if (recording->owner == NULL)
        return;
    cudaStreamSynchronize(cuda_of(backend)->stream); /* it may still be carried out */
    cudaGraphExecDestroy((cudaGraphExec_t)recording->owner);
    recording->owner = NULL;
}
