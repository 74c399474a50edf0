/* The only file that calls cuBLASLt. Our matrices are row-major and the library's are column-major, so it computes outᵀ =
 * op(b)ᵀ op(a)ᵀ, whose columns are our rows. Products of f32 values are in f32, without TF32; products of bf16 values have
 * f32 sums. The library is opened with the backend, because half a gigabyte is too much for commands without a GPU. */
#include <cublasLt.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "models/cuda/cuda.h"

enum { PLANS = 1024, MOST_PLANS = PLANS / 4 * 3, ROWS = 4096, ANSWERS = 16 };

/* Numbers of rows that an algorithm must take, if one of the answers does: of few texts up to the tokens of a large batch. */
static const uint64_t rows_taken[] = {1, 3, 8, 64, 197, 512, 4096, 197 * 64, 65536};

/* The key by which a product's algorithm is chosen. */
struct shape {
    uint64_t m, n, k, lda, ldb, ldc, ldd;
    uint32_t a_alignment, b_alignment, c_alignment, d_alignment; /* bytes */
    int transpose_a, transpose_b, bias, in_place;
    cudaDataType_t operands, result;
};

struct plan {
    bool used;
    struct shape shape;
    cublasLtMatmulAlgo_t algorithm;
};

/* clang-format off */
#define FUNCTIONS(f) \
    f(cublasLtCreate) f(cublasLtDestroy) f(cublasLtGetStatusString) f(cublasLtGetVersion) \
    f(cublasLtMatmulDescCreate) f(cublasLtMatmulDescDestroy) f(cublasLtMatmulDescSetAttribute) \
    f(cublasLtMatrixLayoutCreate) f(cublasLtMatrixLayoutDestroy) \
    f(cublasLtMatmulPreferenceCreate) f(cublasLtMatmulPreferenceDestroy) f(cublasLtMatmulPreferenceSetAttribute) \
    f(cublasLtMatmulAlgoGetHeuristic) f(cublasLtMatmulAlgoCheck) f(cublasLtMatmul)
/* clang-format on */
struct library {
    void *handle;
    FUNCTIONS(CUDA_FUNCTION)
};

struct cuda_products {
    struct library library;
    cublasLtHandle_t context;
    void *workspaces;         /* of the stream and of the second branch's */
    struct plan plans[PLANS]; /* a hash table; a shape is at its place or behind it */
    size_t plans_used;
};

#ifndef CUBLAS_LIBRARY
#define LIBRARY_NAME_OF(major) "libcublasLt.so." #major
#define LIBRARY_NAME(major) LIBRARY_NAME_OF(major)
#define CUBLAS_LIBRARY LIBRARY_NAME(CUBLAS_VER_MAJOR)
#endif

static status open_library(struct library *library, struct error *error)
{
    const struct cuda_function wanted[] = {FUNCTIONS(CUDA_WANTED)};
    return cuda_library_open(&library->handle, CUBLAS_LIBRARY, "cuBLASLt", "use the CPU (run.backend=cpu)", wanted,
                             sizeof wanted / sizeof *wanted, error);
}

static status refused(const struct library *library, cublasStatus_t result, const struct shape *s, struct error *error)
{
    bool in_any_batch = result == CUBLAS_STATUS_NOT_SUPPORTED && !s->transpose_a;
    return error_set(error, ERROR_DEVICE, "cuBLASLt: a product of %llu x %llu x %llu failed: %s%s",
                     (unsigned long long)s->n, (unsigned long long)s->m, (unsigned long long)s->k,
                     library->cublasLtGetStatusString(result),
                     in_any_batch ? "; its algorithm must be the one for 4096 rows, so that a row has the same bits in "
                                    "any batch: change the size of the batch, run.precision or the version of CUDA, or "
                                    "use the CPU (run.backend=cpu)"
                                  : "");
}

status cuda_products_create(struct cuda *cuda, struct error *error)
{
    cuda->products = (struct cuda_products *)xcalloc(1, sizeof *cuda->products);
    struct library *library = &cuda->products->library;
    TRY(open_library(library, error));
    cublasStatus_t result = library->cublasLtCreate(&cuda->products->context);
    if (result != CUBLAS_STATUS_SUCCESS)
        return error_set(error, ERROR_DEVICE, "cuda: cuBLASLt does not start: %s",
                         library->cublasLtGetStatusString(result));
    return cuda_done(cudaMalloc(&cuda->products->workspaces, 2 * (size_t)CUDA_WORKSPACE), "the workspace of products",
                     error);
}

void cuda_products_destroy(struct cuda *cuda)
{
    if (cuda->products == NULL)
        return;
    cudaFree(cuda->products->workspaces);
    if (cuda->products->context != NULL)
        cuda->products->library.cublasLtDestroy(cuda->products->context);
    if (cuda->products->library.handle != NULL)
        dlclose(cuda->products->library.handle);
    free(cuda->products);
    cuda->products = NULL;
}

size_t cuda_products_version(const struct cuda *cuda)
{
    return cuda->products->library.cublasLtGetVersion();
}

/* The library's descriptions of one product. */
struct description {
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t a, b, c, d; /* a: our b, and the other way round; c: d itself where the sum is in place */
};

static cublasStatus_t describe(const struct library *library, struct description *x, const struct shape *s,
                               const void *bias)
{
    cublasOperation_t first = s->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                      second = s->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    cublasStatus_t result = library->cublasLtMatmulDescCreate(&x->product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = library->cublasLtMatmulDescSetAttribute(x->product, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (result == CUBLAS_STATUS_SUCCESS)
        result =
            library->cublasLtMatmulDescSetAttribute(x->product, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (result == CUBLAS_STATUS_SUCCESS && bias != NULL)
        result = library->cublasLtMatmulDescSetAttribute(x->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                                         sizeof epilogue);
    if (result == CUBLAS_STATUS_SUCCESS && bias != NULL)
        result =
            library->cublasLtMatmulDescSetAttribute(x->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = library->cublasLtMatrixLayoutCreate(&x->a, s->operands, s->transpose_b ? s->k : s->m,
                                                     s->transpose_b ? s->m : s->k, (int64_t)s->ldb);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = library->cublasLtMatrixLayoutCreate(&x->b, s->operands, s->transpose_a ? s->n : s->k,
                                                     s->transpose_a ? s->k : s->n, (int64_t)s->lda);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = library->cublasLtMatrixLayoutCreate(&x->d, s->result, s->m, s->n, (int64_t)s->ldd);
    if (result == CUBLAS_STATUS_SUCCESS && s->in_place)
        x->c = x->d;
    else if (result == CUBLAS_STATUS_SUCCESS)
        result = library->cublasLtMatrixLayoutCreate(&x->c, s->result, s->m, s->n, (int64_t)s->ldc);
    return result;
}

static void forget(const struct library *library, struct description *x)
{
    if (x->c != NULL && x->c != x->d)
        library->cublasLtMatrixLayoutDestroy(x->c);
    if (x->d != NULL)
        library->cublasLtMatrixLayoutDestroy(x->d);
    if (x->b != NULL)
        library->cublasLtMatrixLayoutDestroy(x->b);
    if (x->a != NULL)
        library->cublasLtMatrixLayoutDestroy(x->a);
    if (x->product != NULL)
        library->cublasLtMatmulDescDestroy(x->product);
}

/* Where the shape is or belongs. One place at least is free. */
static struct plan *place_of(struct cuda_products *products, const struct shape *s)
{
    const unsigned char *bytes = (const unsigned char *)s;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < sizeof *s; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    struct plan *plan = &products->plans[hash % PLANS];
    while (plan->used && memcmp(&plan->shape, s, sizeof *s) != 0)
        plan = plan + 1 < products->plans + PLANS ? plan + 1 : products->plans;
    return plan;
}

/* Whether the algorithm takes every number of rows, with the workspace that there is. */
static bool takes_any_rows(const struct cuda_products *products, const struct shape *s, const void *bias,
                           const cublasLtMatmulAlgo_t *algorithm)
{
    const struct library *library = &products->library;
    struct shape alike = *s;
    bool taken = true;
    for (size_t i = 0; taken && i < sizeof rows_taken / sizeof *rows_taken; i++) {
        struct description x = {};
        cublasLtMatmulHeuristicResult_t result = {};
        alike.n = rows_taken[i];
        taken = describe(library, &x, &alike, bias) == CUBLAS_STATUS_SUCCESS &&
                library->cublasLtMatmulAlgoCheck(products->context, x.product, x.a, x.b, x.c, x.d, algorithm,
                                                 &result) == CUBLAS_STATUS_SUCCESS &&
                result.workspaceSize <= CUDA_WORKSPACE;
        forget(library, &x);
    }
    return taken;
}

/* The library's answers for a product like this one, the best first, and how many there are. */
static cublasStatus_t ask(const struct cuda_products *products, const struct shape *s, const struct description *x,
                          cublasLtMatmulHeuristicResult_t *answers, int *found)
{
    const struct library *library = &products->library;
    cublasLtMatmulPreference_t preference;
    size_t workspace = CUDA_WORKSPACE;
    uint32_t reduction = s->transpose_a ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_NONE;
    cublasStatus_t result = library->cublasLtMatmulPreferenceCreate(&preference);
    if (result != CUBLAS_STATUS_SUCCESS)
        return result;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t size;
    } wanted[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &s->b_alignment, sizeof s->b_alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &s->a_alignment, sizeof s->a_alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &s->c_alignment, sizeof s->c_alignment},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &s->d_alignment, sizeof s->d_alignment},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && result == CUBLAS_STATUS_SUCCESS; i++)
        result = library->cublasLtMatmulPreferenceSetAttribute(preference, wanted[i].attribute, wanted[i].value,
                                                               wanted[i].size);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = library->cublasLtMatmulAlgoGetHeuristic(products->context, x->product, x->a, x->b, x->c, x->d,
                                                         preference, ANSWERS, answers, found);
    library->cublasLtMatmulPreferenceDestroy(preference);
    return result;
}

/* The best answer that takes any number of rows, or where none does, the best. Of a weight's gradient the rows are the depth,
 * which is the shape's own. */
static cublasStatus_t choose_algorithm(const struct cuda_products *products, const struct shape *s, const void *bias,
                                       cublasLtMatmulAlgo_t *algorithm)
{
    cublasLtMatmulHeuristicResult_t answers[ANSWERS];
    struct description x = {};
    int found = 0, best = -1, chosen = -1;
    cublasStatus_t result = describe(&products->library, &x, s, bias);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = ask(products, s, &x, answers, &found);
    forget(&products->library, &x);
    if (result != CUBLAS_STATUS_SUCCESS)
        return result;
    for (int i = 0; i < found && chosen < 0; i++)
        if (answers[i].state == CUBLAS_STATUS_SUCCESS) {
            best = best < 0 ? i : best;
            chosen = s->transpose_a || takes_any_rows(products, s, bias, &answers[i].algo) ? i : -1;
        }
    if (best < 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *algorithm = answers[chosen < 0 ? best : chosen].algo;
    return CUBLAS_STATUS_SUCCESS;
}

/* The algorithm of a product, chosen once and remembered, so that the same product is always computed in the same way. A table
 * that is nearly full is emptied: what is chosen again is the same. */
static cublasStatus_t choose(struct cuda_products *products, const struct shape *s, const void *bias,
                             const struct plan **chosen)
{
    struct plan *plan = place_of(products, s);
    if (!plan->used && products->plans_used == MOST_PLANS) {
        memset(products->plans, 0, sizeof products->plans);
        products->plans_used = 0;
        plan = place_of(products, s);
    }
    *chosen = plan;
    if (plan->used)
        return CUBLAS_STATUS_SUCCESS;
    cublasStatus_t result = choose_algorithm(products, s, bias, &plan->algorithm);
    if (result != CUBLAS_STATUS_SUCCESS)
        return result;
    plan->used = true;
    plan->shape = *s;
    products->plans_used++;
    return CUBLAS_STATUS_SUCCESS;
}

/* The largest power of two that divides the address, at most 64, which divides all memory that is taken (core/alloc.h): what
 * lies beyond depends on what was taken before, a number of rows or whether a rounded copy is kept, and must not choose
 * another algorithm. */
static uint32_t alignment_of(const void *address)
{
    enum { MOST = 64 };
    uintptr_t bits = (uintptr_t)address | MOST;
    return (uint32_t)(bits & -bits);
}

static cudaDataType_t type_of(struct matrix m)
{
    return m.type == TENSOR_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Unless a is transposed, a row of out needs one row of a. Its bits do not depend on the other rows or their number, because
 * the algorithm is the one for ROWS rows, without split sums. One for another number of rows is no substitute. */
static cublasStatus_t multiply(struct cuda *cuda, const struct cuda_product *p, const struct shape *s,
                               const struct description *x)
{
    struct shape alike = *s;
    if (!s->transpose_a)
        alike.n = ROWS;
    struct cuda_products *products = cuda->products;
    const void *c = s->in_place ? p->out.data : p->addend.data;
    void *workspace = (char *)products->workspaces + (cuda->on_side ? CUDA_WORKSPACE : 0);
    const struct plan *plan;
    cublasStatus_t result = choose(products, &alike, p->bias, &plan);
    if (result != CUBLAS_STATUS_SUCCESS)
        return result;
    return products->library.cublasLtMatmul(products->context, x->product, &p->scale, p->b.data, x->a, p->a.data, x->b,
                                            &p->beta, c, x->c, p->out.data, x->d, &plan->algorithm, workspace,
                                            CUDA_WORKSPACE, cuda->stream);
}

status cuda_product_run(struct cuda *cuda, const struct cuda_product *p, struct error *error)
{
    struct matrix c = p->addend.data != NULL ? p->addend : p->out;
    struct shape s;
    memset(&s, 0, sizeof s); /* compared byte by byte */
    s.m = p->out.columns;
    s.n = p->out.rows;
    s.k = p->transpose_a ? p->a.rows : p->a.columns;
    s.lda = p->a.stride;
    s.ldb = p->b.stride;
    s.ldc = c.stride;
    s.ldd = p->out.stride;
    s.transpose_a = p->transpose_a;
    s.transpose_b = p->transpose_b;
    s.a_alignment = alignment_of(p->a.data);
    s.b_alignment = alignment_of(p->b.data);
    s.c_alignment = alignment_of(c.data);
    s.d_alignment = alignment_of(p->out.data);
    s.operands = type_of(p->a);
    s.result = type_of(p->out);
    s.bias = p->bias != NULL;
    s.in_place = c.data == p->out.data;
    assert(p->bias == NULL || (uintptr_t)p->bias % CUDA_BIAS_ALIGNMENT == 0);
    assert(!s.in_place || c.stride == p->out.stride);
    const struct library *library = &cuda->products->library;
    struct description x = {};
    cublasStatus_t result = describe(library, &x, &s, p->bias);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = multiply(cuda, p, &s, &x);
    forget(library, &x);
    return result == CUBLAS_STATUS_SUCCESS ? OK : refused(library, result, &s, error);
}
