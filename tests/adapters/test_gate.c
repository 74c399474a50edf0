/* Who decides on experts, and what comes of it, against a plain reference: the first token, the mean of all, or every
 * token for itself. */
#include <string.h>

#include "adapters/statistics.h"
#include "tests/adapters/small_adapters.h"
#include "tests/models/backend/reference.h"

enum { CONTEXT = 6, LONGEST = 5, START = 9, END = 10 };

static const int32_t lengths[SMALL_PROMPTS] = {4, 3, 5, 4}; /* of the prompts in small.c */

/* Hooks before those of the adapters, which compute what they ought to. */
struct check {
    struct small *s;
    struct adapters *adapters;
    const struct block_hook *inner; /* by block */
    size_t blocks_seen;
    float first[SMALL_PROMPTS * LONGEST * 128]; /* what entered the first block */
};

static size_t own_positions(const struct block_context *context, const struct tensor *x, size_t b)
{
    return context->tower == TOWER_TEXT ? (size_t)lengths[b] : x->shape[1];
}

static bool decides_by_token(const struct check *c)
{
    return c->adapters->settings.routing == ROUTING_PER_TOKEN;
}

/* What token l of sample b is decided by. */
static void gate_of(const struct check *c, const struct block_context *context, const struct tensor *shape,
                    const float *x, size_t b, size_t l, double *gate)
{
    size_t positions = shape->shape[1], width = shape->shape[2],
           own = c->adapters->settings.gate_input == GATE_MEAN ? own_positions(context, shape, b) : 1;
    const float *rows = x + (b * positions + (decides_by_token(c) ? l : 0)) * width;
    memset(gate, 0, width * sizeof *gate);
    for (size_t j = 0; j < own; j++)
        for (size_t i = 0; i < width; i++)
            gate[i] += (double)rows[j * width + i] / (double)own;
}

/* y of one token += what the K experts with the largest logits add. */
static void add_mixture(const struct check *c, enum tower tower, size_t bank, const double *gate, const float *x,
                        double *y)
{
    const struct adapter_settings *s = &c->adapters->settings;
    const struct parameters *group = c->adapters->towers[tower].parameters;
    size_t width = c->adapters->towers[tower].width;
    const float *values = small_values(c->s, group),
                *routers = values + group->list[c->adapters->towers[tower].banks[bank].routers].offset;
    double z[16] = {0}, gates[16];
    int32_t chosen[16];
    for (size_t i = 0; i < width; i++)
        for (size_t e = 0; e < s->experts; e++)
            z[e] += gate[i] * (double)routers[(SMALL_TASK * width + i) * s->experts + e];
    reference_choose(chosen, gates, z, s->experts, s->top_k);
    for (size_t k = 0; k < s->top_k; k++)
        add_expert(c->adapters, values, tower, bank, (size_t)chosen[k], (double)s->scale * gates[k], x, y);
}

static status checked_forward(void *state, const struct block_context *context, const struct tensor *x,
                              const struct tensor *ln2_x, struct tensor *y, struct error *failure)
{
    struct check *c = state;
    struct device *d = &c->s->d;
    const struct adapter_tower *tower = &c->adapters->towers[context->tower];
    struct arena_mark mark = arena_mark(&d->host);
    size_t n = tensor_elements(y), positions = x->shape[1], width = x->shape[2];
    assert_int_equal(positions, context->tower == TOWER_TEXT ? LONGEST : 10); /* the last block, too, is whole */
    const float *input = from_device(d, x->data, n * sizeof *input),
                *before = from_device(d, y->data, n * sizeof *before);
    double *expected = doubles(d, before, n), gate[256];
    bool decides = context->block == 0 || tower->decisions == 2;
    if (context->block == 0)
        memcpy(c->first, input, n * sizeof *input);
    for (size_t b = 0; b < x->shape[0]; b++)
        for (size_t l = 0; l < (decides_by_token(c) ? own_positions(context, x, b) : positions); l++) {
            size_t at = (b * positions + l) * width;
            struct arena_mark row = arena_mark(&d->host);
            gate_of(c, context, x, decides ? input : c->first, b, l, gate);
            add_mixture(c, context->tower, context->block * tower->blocks / 2, gate, input + at, expected + at);
            arena_release(&d->host, row);
        }
    const struct block_hook *inner = &c->inner[context->block];
    status result = inner->forward(inner->state, context, x, ln2_x, y, failure);
    expect_close(d, "what the experts add", y->data, expected, n, 1e-4);
    arena_release(&d->host, mark);
    c->blocks_seen++;
    return result;
}

static status begin(void *state, const struct block_context *context, const struct tensor *x, struct error *failure)
{
    const struct check *c = state;
    const struct block_hook *inner = &c->inner[context->block];
    return inner->begin(inner->state, context, x, failure);
}

static const char *const forms[] = {
    "gate_input=mean",
    "routing=per_token",
    "routing=per_token top_k=1",
    "routing=per_token top_k=5",
    "routing=per_token share_across_blocks=1",
    "routing=per_token share_across_blocks=1 share_routing=1",
    "routing=per_token share_across_blocks=1 share_routing=2",
    "gate_input=mean share_across_blocks=1",
    "gate_input=mean share_across_blocks=1 share_routing=1",
    "gate_input=mean share_across_blocks=1 share_routing=2",
};

/* Means, tokens, and the experts of the first block in both, each with its own decision, or with that of the first. */
ADAPTERS_TEST_OF(experts_add_what_the_formula_says, 2, forms)
{
    struct check checks[TOWERS];
    struct block_hook hooks[TOWERS][2];
    for (int t = 0; t < TOWERS; t++) {
        checks[t] = (struct check){.s = s, .adapters = adapters, .inner = s->hooks[t]};
        for (size_t b = 0; b < 2; b++) {
            hooks[t][b] = s->hooks[t][b];
            hooks[t][b].state = &checks[t];
            hooks[t][b].forward = checked_forward;
            hooks[t][b].begin = hooks[t][b].begin != NULL ? begin : NULL;
        }
        s->hooks[t] = hooks[t];
    }
    small_encode(s);
    assert_int_equal(checks[TOWER_IMAGE].blocks_seen, 2);
    assert_int_equal(checks[TOWER_TEXT].blocks_seen, 2);
}

/* Every token of an image and of a prompt counts, nothing after a prompt's end does. */
ADAPTERS_TEST(tokens_are_counted, 2, "routing=per_token balance_loss=cv balance_weight=0.1")
{
    const int32_t routers[] = {SMALL_TASK, -1, SMALL_TASK, SMALL_TASK};
    small_set_routers(s, TOWER_TEXT, routers);
    small_set_routers(s, TOWER_IMAGE, routers);
    small_loss(s, true);
    const size_t expected[TOWERS] = {2 * 10, 4 + 5 + 4};
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < 2; b++)
            assert_int_equal(total_of(s, adapters->towers[t].banks[b].counts, SMALL_EXPERTS),
                             expected[t] * SMALL_TOP_K);
}

/* An image's features have the same bits alone and beside others, and for any number of threads. */
ADAPTERS_TEST(tokens_do_not_depend_on_others, ANY_THREADS, "routing=per_token shared_expert=true")
{
    small_set_routers(s, TOWER_IMAGE, (const int32_t[]){2, -1, 0});
    small_expect_parts(s);
}

/* Features of `count` prompts, at most one more than the model's own. */
static const float *encode(struct small *s, const int32_t *tokens, size_t count, bool training)
{
    const int32_t routers[] = {SMALL_TASK, SMALL_TASK, SMALL_TASK, SMALL_TASK, SMALL_TASK};
    s->router[TOWER_TEXT] = to_device(&s->d, routers, sizeof routers);
    return small_encode_texts(s, tokens, count, training);
}

/* The prompts, with other tokens after their ends. */
static void change_rests(int32_t *others)
{
    memcpy(others, small_tokens, sizeof small_tokens);
    for (size_t c = 0; c < SMALL_PROMPTS; c++)
        for (size_t l = (size_t)lengths[c]; l < CONTEXT; l++)
            others[c * CONTEXT + l] = (int32_t)(1 + (c + 3 * l) % 8);
}

static const char *const shared[] = {"shared_expert=true gate_input=mean", "shared_expert=true routing=per_token"};

/* Nor do other prompts, however long they are. */
ADAPTERS_TEST_OF(what_follows_a_prompt_changes_no_bit, 2, shared)
{
    int32_t others[(SMALL_PROMPTS + 1) * CONTEXT] = {0};
    change_rests(others);
    memcpy(others + SMALL_PROMPTS * CONTEXT, (const int32_t[]){START, 8, 6, 2, 1, END}, CONTEXT * sizeof *others);
    size_t embed = small_dimensions.embed, bytes = SMALL_PROMPTS * embed * sizeof(float);
    const float *plain = encode(s, small_tokens, SMALL_PROMPTS, false);
    assert_memory_equal(encode(s, others, SMALL_PROMPTS, false), plain, bytes);
    assert_memory_equal(encode(s, others, SMALL_PROMPTS + 1, false), plain, bytes);
    for (size_t c = 0; c < SMALL_PROMPTS; c++)
        assert_memory_equal(encode(s, small_tokens + c * CONTEXT, 1, false), plain + c * embed, embed * sizeof *plain);
}

/* What policies ask for, too. */
ADAPTERS_TEST(statistics_are_of_tokens, 2, "routing=per_token")
{
    int32_t others[SMALL_PROMPTS * CONTEXT], tokens = 0;
    const struct adapter_tower *tower = &adapters->towers[TOWER_TEXT];
    size_t probes = tower->blocks * PROBES * tower->width;
    change_rests(others);
    must(adapters_collect(adapters, NEEDS_PROBES | NEEDS_PAIR_COUNTS | NEEDS_NEXT_COUNTS, &s->d.memory, &error));
    encode(s, small_tokens, SMALL_PROMPTS, true);
    const float *plain = from_device(&s->d, tower->statistics.probes, probes * sizeof *plain);
    encode(s, others, SMALL_PROMPTS, true);
    expect_floats(&s->d, "probes", tower->statistics.probes, plain, probes);
    for (size_t c = 0; c < SMALL_PROMPTS; c++)
        tokens += lengths[c];
    const int32_t *const squares[] = {tower->statistics.pairs, tower->statistics.pairs + 25, tower->statistics.next};
    for (size_t i = 0; i < 3; i++) /* of both passes: K · K pairs a token */
        assert_int_equal(total_of(s, squares[i], 25), 2 * 4 * tokens);
}
