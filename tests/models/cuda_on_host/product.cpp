/* cuBLASLt in plain loops. As the library's, its algorithms add in orders of their own, refuse some numbers of rows and are
 * offered by the number of rows that is asked for, so that a row has the same bits in any batch only if its algorithm is chosen
 * for all of them. Its matrices are column-major: its columns are the caller's rows. */
#include <cublasLt.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <vector>

struct emulation_products {
};

struct emulation_product {
    cublasOperation_t transpose_a, transpose_b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
};

struct emulation_layout {
    cudaDataType_t type;
    std::size_t rows, columns, ld;
};

struct emulation_preference {
    std::size_t workspace;
    std::uint32_t reduction, alignment[4]; /* of a, b, c and d */
};

std::size_t emulation_heuristics_asked;
bool emulation_refuses_few_rows;

namespace
{

/* What an algorithm is: the library's numbers mean nothing to its caller. */
struct algorithm {
    std::uint32_t chunk; /* it adds so many products before it adds their sum to the total */
    std::uint32_t least, most;
    std::uint32_t alignment[4];
    std::uint32_t workspace;
};
static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t), "an algorithm has its room");

float value_at(const void *values, cudaDataType_t type, std::size_t place)
{
    return type == CUDA_R_16BF ? __bfloat162float(static_cast<const __nv_bfloat16 *>(values)[place])
                               : static_cast<const float *>(values)[place];
}

void set_value(void *values, cudaDataType_t type, std::size_t place, float value)
{
    if (type == CUDA_R_16BF)
        static_cast<__nv_bfloat16 *>(values)[place] = __float2bfloat16(value);
    else
        static_cast<float *>(values)[place] = value;
}

/* A product with values instead of handles, which the caller destroys before it is carried out. */
struct operands {
    emulation_product product;
    emulation_layout a, b, c, d;
    const void *of_a, *of_b, *of_c;
    void *of_d;
    float scale, beta;
    std::size_t chunk;
};

/* d = scale · op(a) op(b) + bias + beta · c; the values of a column of d side by side, as the compiler can add them at once. */
void multiply(const operands &o)
{
    std::size_t depth = o.product.transpose_a == CUBLAS_OP_T ? o.a.rows : o.a.columns, m = o.d.rows;
    emulation_open();
    std::vector<float> a(depth * m), totals(m), sums(m);
    for (std::size_t k = 0; k < depth; k++)
        for (std::size_t i = 0; i < m; i++)
            a[k * m + i] =
                value_at(o.of_a, o.a.type, o.product.transpose_a == CUBLAS_OP_T ? i * o.a.ld + k : k * o.a.ld + i);
    std::size_t columns = o.d.columns - emulation_spoils("cublasLtMatmul");
    for (std::size_t j = 0; j < columns; j++) {
        totals.assign(m, 0);
        for (std::size_t first = 0; first < depth; first += o.chunk) {
            sums.assign(m, 0);
            for (std::size_t k = first; k < depth && k < first + o.chunk; k++) {
                float factor =
                    value_at(o.of_b, o.b.type, o.product.transpose_b == CUBLAS_OP_T ? k * o.b.ld + j : j * o.b.ld + k);
                const float *column = &a[k * m];
                for (std::size_t i = 0; i < m; i++)
                    sums[i] += factor * column[i];
            }
            for (std::size_t i = 0; i < m; i++)
                totals[i] += sums[i];
        }
        for (std::size_t i = 0; i < m; i++) {
            float total = totals[i] * o.scale;
            if (o.product.epilogue == CUBLASLT_EPILOGUE_BIAS)
                total += value_at(o.product.bias, o.d.type, i);
            if (o.beta != 0)
                total += o.beta * value_at(o.of_c, o.c.type, j * o.c.ld + i);
            set_value(o.of_d, o.d.type, j * o.d.ld + i, total);
        }
    }
    emulation_shut();
}

bool sizes_fit(const emulation_product &p, const emulation_layout &a, const emulation_layout &b,
               const emulation_layout &c, const emulation_layout &d)
{
    std::size_t m = a.rows, depth = a.columns, other = b.rows, n = b.columns;
    if (p.transpose_a == CUBLAS_OP_T)
        std::swap(m, depth);
    if (p.transpose_b == CUBLAS_OP_T)
        std::swap(other, n);
    return a.type == b.type && c.type == d.type && depth > 0 && depth == other && m == d.rows && n == d.columns &&
           c.rows == m && c.columns == n && a.ld >= a.rows && b.ld >= b.rows && c.ld >= m && d.ld >= m;
}

cublasStatus_t judge(const algorithm &x, std::size_t rows)
{
    std::size_t least = emulation_refuses_few_rows ? std::max(x.least, 8u) : x.least;
    return rows < least || rows > x.most ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

bool aligned(const void *address, std::size_t alignment)
{
    return reinterpret_cast<std::uintptr_t>(address) % std::max(alignment, std::size_t{1}) == 0;
}

algorithm algorithm_of(const cublasLtMatmulAlgo_t *from)
{
    algorithm x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

template <typename T> cublasStatus_t create(T **object, T value)
{
    *object = new T(value);
    return CUBLAS_STATUS_SUCCESS;
}

template <typename T> cublasStatus_t destroy(T *object)
{
    delete object;
    return CUBLAS_STATUS_SUCCESS;
}

} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    return create(handle, {});
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return destroy(handle);
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                   : "CUBLAS_STATUS_NOT_SUPPORTED";
}

std::size_t cublasLtGetVersion()
{
    return 0;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *product, cublasComputeType_t, cudaDataType_t)
{
    return create(product, {});
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product)
{
    return destroy(product);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, std::size_t size)
{
    void *const places[] = {&product->transpose_a, &product->transpose_b, &product->epilogue, &product->bias};
    std::memcpy(places[attribute], value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t ld)
{
    return create(layout, {type, rows, columns, static_cast<std::size_t>(ld)});
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return create(preference, {});
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    std::size_t size)
{
    std::uint32_t *alignment = preference->alignment;
    void *const places[] = {&preference->workspace, &preference->reduction, alignment,
                            alignment + 1,          alignment + 2,          alignment + 3};
    std::memcpy(places[attribute], value, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* Best first: one that splits its sum, where this is wanted; one for many rows alone; one that will not work at all; one for
 * less than 60,000 rows; and one for all, whose chunks depend on the rows that are asked for. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference,
                                              int wanted, cublasLtMatmulHeuristicResult_t *answers, int *found)
{
    const std::uint32_t all = UINT32_MAX, chunk = d->columns < 64 ? 48 : d->columns < 1024 ? 96 : 64;
    const algorithm offered[] = {{16, 0, all, {}, 1 << 20},
                                 {24, 8, all, {}, 0},
                                 {1, all, 0, {}, 0},
                                 {32, 0, 60000, {}, 0},
                                 {chunk, 0, all, {}, 0}};
    emulation_heuristics_asked++;
    *found = 0;
    if (!sizes_fit(*product, *a, *b, *c, *d))
        return CUBLAS_STATUS_INVALID_VALUE;
    for (algorithm x : offered) {
        if (*found == wanted || x.workspace > preference->workspace ||
            (x.workspace > 0 && preference->reduction == CUBLASLT_REDUCTION_SCHEME_NONE))
            continue;
        std::memcpy(x.alignment, preference->alignment, sizeof x.alignment);
        cublasLtMatmulHeuristicResult_t &answer = answers[(*found)++];
        answer = {{}, x.workspace, judge(x, d->columns)};
        std::memcpy(&answer.algo, &x, sizeof x);
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *from, cublasLtMatmulHeuristicResult_t *result)
{
    if (!sizes_fit(*product, *a, *b, *c, *d))
        return CUBLAS_STATUS_INVALID_VALUE;
    algorithm x = algorithm_of(from);
    *result = {*from, x.workspace, judge(x, d->columns)};
    return result->state;
}

/* Refuses what the library's manual forbids, also where the library does not always refuse it. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void *scale, const void *a,
                              cublasLtMatrixLayout_t of_a, const void *b, cublasLtMatrixLayout_t of_b, const void *beta,
                              const void *c, cublasLtMatrixLayout_t of_c, void *d, cublasLtMatrixLayout_t of_d,
                              const cublasLtMatmulAlgo_t *from, void *, std::size_t workspace, cudaStream_t stream)
{
    algorithm x = algorithm_of(from);
    const std::uint32_t *alignment = x.alignment;
    bool biased = product->epilogue == CUBLASLT_EPILOGUE_BIAS;
    if (!sizes_fit(*product, *of_a, *of_b, *of_c, *of_d) || (c == d && of_c->ld != of_d->ld) ||
        (biased && (product->bias == nullptr || !aligned(product->bias, 16))) || !aligned(a, alignment[0]) ||
        !aligned(b, alignment[1]) || !aligned(c, alignment[2]) || !aligned(d, alignment[3]) || workspace < x.workspace)
        return CUBLAS_STATUS_INVALID_VALUE;
    cublasStatus_t judged = judge(x, of_d->columns);
    if (judged != CUBLAS_STATUS_SUCCESS)
        return judged;
    operands o = {*product, *of_a, *of_b, *of_c, *of_d, a, b, c, d, 0, 0, x.chunk};
    std::memcpy(&o.scale, scale, sizeof o.scale);
    std::memcpy(&o.beta, beta, sizeof o.beta);
    emulation_submit(
        stream, [o] { multiply(o); }, "cublasLtMatmul");
    return CUBLAS_STATUS_SUCCESS;
}
