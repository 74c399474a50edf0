/* Gradients of stacked experts' weights and biases. The slots of an expert, which lie in the order of their samples, are cut
 * into units of four; a block has 64 × 64 values of one unit's sum. The sums of an expert's units are added up in their
 * order, so it takes no longer where two experts have all samples. */
#include "models/cuda/experts.cuh"

enum { SLOTS = 4, SIDE = 64, LD_RESULT = SIDE + 4 };
enum { FIRST_WEIGHT, FIRST_BIAS, SECOND_WEIGHT, SECOND_BIAS, PARTS };

static __host__ __device__ inline size_t size_of(const struct stack *s, int part)
{
    return part == FIRST_BIAS ? s->hidden : part == SECOND_BIAS ? s->width : s->hidden * s->width;
}

static __host__ __device__ inline size_t values_of_unit(const struct stack *s)
{
    return 2 * s->hidden * s->width + s->hidden + s->width;
}

/* Of experts with more than one unit: at most two for four slots. */
size_t expert_partial_values(const struct expert_gradients *g)
{
    const struct stack *s = &g->stack;
    return (2 * s->d.samples * s->d.top_k / SLOTS + 1) * values_of_unit(s);
}

/* A unit of an expert: slots [begin, end). */
struct unit {
    size_t expert, begin, end;
    bool alone;     /* the only one */
    float *partial; /* where its sums go if it is not */
};

static __device__ inline size_t units_of(const struct slots *d, size_t e)
{
    return (size_t)(d->offsets[e + 1] - d->offsets[e] + SLOTS - 1) / SLOTS;
}

static __device__ inline float *partial_of(const struct expert_gradients *g, size_t e, size_t within)
{
    return g->partial + (2 * (size_t)g->stack.d.offsets[e] / SLOTS + within) * values_of_unit(&g->stack);
}

/* Units are numbered through all experts, as tiles in gemm.cu; some numbers have none. */
static __device__ inline size_t first_unit(const struct slots *d, size_t e)
{
    return (size_t)d->offsets[e] / SLOTS + e;
}

static __device__ inline bool find_unit(const struct expert_gradients *g, size_t number, struct unit *unit)
{
    const struct slots *d = &g->stack.d;
    size_t e = 0;
    for (size_t end = d->experts; end - e > 1;) {
        size_t middle = (e + end) / 2;
        if (first_unit(d, middle) <= number)
            e = middle;
        else
            end = middle;
    }
    size_t within = number - first_unit(d, e), begin = (size_t)d->offsets[e] + within * SLOTS,
           end = (size_t)d->offsets[e + 1];
    *unit = {e, begin, begin + SLOTS < end ? begin + SLOTS : end, units_of(d, e) == 1, partial_of(g, e, within)};
    return begin < end && (g->frozen == NULL || g->frozen[e] == 0);
}

static __device__ inline void give(const struct expert_gradients *g, const struct unit *unit, int part, size_t at,
                                   float value)
{
    size_t before = 0;
    for (int p = 0; p < part; p++)
        before += size_of(&g->stack, p);
    if (unit->alone)
        g->values[part][unit->expert * size_of(&g->stack, part) + at] += value;
    else
        unit->partial[before + at] = value;
}

template <typename Type> struct rows_at_once {
    using T = Type;
    enum { DEPTH = tile_depth<T>, LD = padded<T, SIDE> };
    union alignas(128) memory {
        struct {
            alignas(128) T units[DEPTH * LD];
            alignas(128) T values[DEPTH * LD];
        } operands;
        float result[SIDE * LD_RESULT];
    };
};

/* Rows of the unit from `first` on: hidden units or their gradients from unit `unit` on, and x or dy from `column` on. */
struct chunk {
    unsigned int first;
    size_t unit, column;
    bool second; /* of W₂: units times their gates, and dy; else gradients of units, and x */
};

template <typename R>
static __device__ void load_chunk(const struct expert_gradients *g, const struct unit *unit, struct chunk c,
                                  typename R::memory *memory)
{
    using T = typename R::T;
    const struct stack *s = &g->stack;
    const struct expert_gradients::batch values = c.second ? g->dy : g->x;
    unsigned int length = (unsigned int)s->rows, rows = (unsigned int)(unit->end - unit->begin) * length;
    for (unsigned int i = threadIdx.x; i < R::DEPTH * (SIDE / EIGHT); i += TILE_THREADS) {
        unsigned int row = c.first + i / (SIDE / EIGHT), across = i % (SIDE / EIGHT) * EIGHT,
                     to = i / (SIDE / EIGHT) * R::LD + across;
        float some[EIGHT] = {}, others[EIGHT] = {};
        if (row < rows) {
            size_t choice = (size_t)s->d.choice[unit->begin + row / length], within = row % length;
            float weight = c.second ? s->scale * s->weights[choice] : 1.0f;
            if (c.unit + across < s->hidden)
                load_eight(c.second ? g->units : g->dunits, operand_type<T>::type,
                           (choice * s->rows + within) * s->hidden + c.unit + across, some);
            for (int n = 0; n < EIGHT; n++)
                some[n] *= weight;
            if (c.column + across < s->width)
                load_eight(values.data, values.type,
                           (choice / s->d.top_k * s->rows + within) * s->width + c.column + across, others);
        }
        store_eight(memory->operands.units, operand_type<T>::type, to, some);
        store_eight(memory->operands.values, operand_type<T>::type, to, others);
    }
}

/* db₂ += Σ gate · Σ dy, 64 columns */
static __device__ void sum_gated(const struct expert_gradients *g, const struct unit *unit, size_t column)
{
    const struct stack *s = &g->stack;
    size_t tiles = tiles_of(s);
    float total = 0;
    if (threadIdx.x >= SIDE || column + threadIdx.x >= s->width)
        return;
    for (size_t slot = unit->begin; slot < unit->end; slot++) {
        size_t choice = (size_t)s->d.choice[slot], b = choice / s->d.top_k;
        float of_sample = 0;
        for (size_t t = 0; t < tiles; t++)
            of_sample += g->sums[(b * tiles + t) * s->width + column + threadIdx.x];
        total += s->scale * s->weights[choice] * of_sample;
    }
    give(g, unit, SECOND_BIAS, column + threadIdx.x, total);
}

/* Blocks (number of a unit, 64 columns of d, 64 hidden units of W₁ or W₂). */
template <typename R>
static __global__ void __launch_bounds__(TILE_THREADS, 2) weight_gradients(struct expert_gradients g)
{
    enum { LANES = TILE_THREADS / SIDE };
    DYNAMIC_SHARED(struct shared_line, lines);
    typename R::memory *memory = (typename R::memory *)lines;
    const struct stack *s = &g.stack;
    struct unit unit;
    struct chunk c = {0, (size_t)(blockIdx.z / 2) * SIDE, (size_t)blockIdx.y * SIDE, blockIdx.z % 2 == 1};
    if (!find_unit(&g, blockIdx.x, &unit))
        return;
    struct tile<typename R::T, SIDE, false, false> sum;
    float bias = 0; /* a column of the units' gradients to four lanes */
    sum.clear();
    for (; c.first < (unit.end - unit.begin) * s->rows; c.first += R::DEPTH) {
        load_chunk<R>(&g, &unit, c, memory);
        __syncthreads();
        sum.multiply(memory->operands.units, R::LD, memory->operands.values, R::LD, R::DEPTH, SIDE);
        for (unsigned int row = threadIdx.x % LANES; blockIdx.y == 0 && row < R::DEPTH; row += LANES)
            bias += operand_type<typename R::T>::widen(memory->operands.units[row * R::LD + threadIdx.x / LANES]);
        __syncthreads();
    }
    sum.store(memory->result, LD_RESULT, SIDE);
    bias = warp_sum(bias, LANES);
    if (!c.second && blockIdx.y == 0 && threadIdx.x % LANES == 0 && c.unit + threadIdx.x / LANES < s->hidden)
        give(&g, &unit, FIRST_BIAS, c.unit + threadIdx.x / LANES, bias);
    if (c.second && c.unit == 0)
        sum_gated(&g, &unit, c.column);
    __syncthreads();
    for (unsigned int i = threadIdx.x; i < SIDE * SIDE; i += TILE_THREADS) {
        unsigned int low = i % SIDE, high = i / SIDE; /* W₁ [m, d] has neighbours along d, W₂ [d, m] along m */
        size_t u = c.unit + (c.second ? low : high), j = c.column + (c.second ? high : low);
        float value = memory->result[c.second ? low * LD_RESULT + high : high * LD_RESULT + low];
        if (u < s->hidden && j < s->width)
            give(&g, &unit, c.second ? SECOND_WEIGHT : FIRST_WEIGHT, c.second ? j * s->hidden + u : u * s->width + j,
                 value);
    }
}

/* Four values of an expert a thread; experts along y. */
static __global__ void add_units(struct expert_gradients g)
{
    const struct stack *s = &g.stack;
    size_t e = blockIdx.y, at = 4 * global_thread(), units = units_of(&s->d, e), within = at;
    if (units < 2 || at >= values_of_unit(s) || (g.frozen != NULL && g.frozen[e] != 0))
        return;
    int part = 0;
    for (; within >= size_of(s, part); part++)
        within -= size_of(s, part);
    struct four<float> total = *(const struct four<float> *)(partial_of(&g, e, 0) + at);
    for (size_t i = 1; i < units; i++) {
        struct four<float> more = *(const struct four<float> *)(partial_of(&g, e, i) + at);
        for (int n = 0; n < 4; n++)
            total.value[n] += more.value[n];
    }
    float *to = g.values[part] + e * size_of(s, part) + within;
    for (int n = 0; n < 4; n++)
        to[n] += total.value[n];
}

template <typename R> static void launch_weights(struct cuda *cuda, const struct expert_gradients *g)
{
    const struct stack *s = &g->stack;
    size_t numbers = s->d.samples * s->d.top_k / SLOTS + s->d.experts;
    CUDA_LAUNCH(cuda, weight_gradients<R>,
                dim3((unsigned int)numbers, blocks_for(s->width, SIDE), 2 * blocks_for(s->hidden, SIDE)), TILE_THREADS,
                sizeof(typename R::memory), *g);
    CUDA_LAUNCH(cuda, add_units, dim3(blocks_for(values_of_unit(s), 4 * BLOCK), (unsigned int)s->d.experts), BLOCK, 0,
                *g);
}

void cuda_expert_weights(struct cuda *cuda, const struct expert_gradients *g)
{
    if (cuda->backend.precision == PRECISION_BF16)
        launch_weights<rows_at_once<__nv_bfloat16>>(cuda, g);
    else
        launch_weights<rows_at_once<float>>(cuda, g);
}
