/* The nodes of every graph that is made, by the names of their kernels: stands before cudaGraphInstantiateWithFlags (the linker's
 * --wrap). A graph of the library's kernels has them as functions of the driver, which alone knows their names. */
#include <cuda.h>
#include <cuda_runtime.h>

#include <cxxabi.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

#include "models/cuda/cuda.h"

extern "C" void graph_node_met(const char *kernel);

/* "void attend<64>(...)" is "attend". */
static void meet(const char *mangled)
{
    int failed;
    char *name = abi::__cxa_demangle(mangled, NULL, NULL, &failed);
    if (failed != 0)
        return graph_node_met(mangled);
    char *start = strncmp(name, "void ", 5) == 0 ? name + 5 : name;
    const char anonymous[] = "(anonymous namespace)::";
    if (strncmp(start, anonymous, sizeof anonymous - 1) == 0)
        start += sizeof anonymous - 1;
    start[strcspn(start, "<(")] = 0;
    graph_node_met(start);
    free(name);
}

static void *driver_function(const char *name)
{
    enum { VERSION = 12030 };
    void *entry = NULL;
    return cuda_driver_function(name, VERSION, &entry) == cudaSuccess ? entry : NULL;
}

static void meet_kernel(cudaGraphNode_t node)
{
    auto parameters =
        (CUresult(*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *))driver_function("cuGraphKernelNodeGetParams");
    auto of_function = (CUresult(*)(const char **, CUfunction))driver_function("cuFuncGetName");
    auto of_kernel = (CUresult(*)(const char **, CUkernel))driver_function("cuKernelGetName");
    CUDA_KERNEL_NODE_PARAMS p;
    const char *name = NULL;
    if (parameters != NULL && parameters((CUgraphNode)node, &p) == CUDA_SUCCESS) {
        if (p.func != NULL && of_function != NULL)
            of_function(&name, p.func);
        else if (p.kern != NULL && of_kernel != NULL)
            of_kernel(&name, p.kern);
    }
    if (name != NULL)
        meet(name);
    else
        graph_node_met("a kernel without a name");
}

extern "C" cudaError_t __real_cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                                            unsigned long long flags);

extern "C" cudaError_t __wrap_cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph,
                                                            unsigned long long flags)
{
    size_t count = 0;
    cudaGraphGetNodes(graph, NULL, &count);
    std::vector<cudaGraphNode_t> nodes(count);
    if (count > 0)
        cudaGraphGetNodes(graph, nodes.data(), &count);
    for (cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type;
        cudaGraphNodeGetType(node, &type);
        if (type == cudaGraphNodeTypeKernel)
            meet_kernel(node);
        else
            graph_node_met(type == cudaGraphNodeTypeMemset   ? "memory set"
                           : type == cudaGraphNodeTypeMemcpy ? "memory copy"
                                                             : "another node");
    }
    return __real_cudaGraphInstantiateWithFlags(executable, graph, flags);
}
