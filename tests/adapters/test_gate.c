/* Who decides on experts, and what comes of it, against a plain reference: the first token or the mean of all. */
#include <math.h>
#include <string.h>

#include "adapters/experts/expert.h"
#include "tests/adapters/small_adapters.h"

enum { CONTEXT = 6, LONGEST = 5, START = 9, END = 10 };

static const int32_t lengths[SMALL_PROMPTS] = {4, 3, 5, 4}; /* of the prompts in small.c */
static const int32_t prompts[SMALL_PROMPTS * CONTEXT] = {START, 1, 2, END, 0,   0, START, 3, END, 0,   0, 0,
                                                         START, 4, 4, 5,   END, 0, START, 7, 1,   END, 0, 0};

/* A hook before that of the adapters, which computes what they ought to. */
struct check {
    struct small *s;
    struct adapters *adapters;
    struct block_hook inner;
    size_t blocks_seen;
};

static size_t own_positions(const struct block_site *site, const struct tensor *x, size_t b)
{
    return site->tower == TOWER_TEXT ? (size_t)lengths[b] : x->shape[1];
}

/* What token l of sample b is decided by. */
static void gate_of(const struct check *c, const struct block_site *site, const struct tensor *shape, const float *x,
                    size_t b, double *gate)
{
    size_t positions = shape->shape[1], width = shape->shape[2],
           own = c->adapters->settings.gate_input == GATE_MEAN ? own_positions(site, shape, b) : 1;
    const float *rows = x + b * positions * width;
    memset(gate, 0, width * sizeof *gate);
    for (size_t l = 0; l < own; l++)
        for (size_t i = 0; i < width; i++)
            gate[i] += (double)rows[l * width + i] / (double)own;
}

static void add_expert(const struct check *c, const struct expert_bank *bank, const struct parameters *group, size_t e,
                       double weight, size_t width, const float *x, double *y)
{
    const float *values = from_device(&c->s->d, group->values, group->values_count * sizeof *values);
    size_t m = c->adapters->settings.bottleneck;
    const float *down = values + group->list[bank->down_weight].offset + e * m * width,
                *down_bias = values + group->list[bank->down_bias].offset + e * m,
                *up = values + group->list[bank->up_weight].offset + e * width * m,
                *up_bias = values + group->list[bank->up_bias].offset + e * width;
    double hidden[64];
    for (size_t j = 0; j < m; j++) {
        hidden[j] = (double)down_bias[j];
        for (size_t i = 0; i < width; i++)
            hidden[j] += (double)down[j * width + i] * (double)x[i];
        hidden[j] = fmax(hidden[j], 0);
    }
    for (size_t i = 0; i < width; i++) {
        double sum = (double)up_bias[i];
        for (size_t j = 0; j < m; j++)
            sum += (double)up[i * m + j] * hidden[j];
        y[i] += weight * sum;
    }
}

/* y of one token += what the K experts with the largest logits add. */
static void add_mixture(const struct check *c, const struct expert_bank *bank, const struct parameters *group,
                        const double *gate, size_t width, const float *x, double *y)
{
    const struct adapter_settings *s = &c->adapters->settings;
    const float *routers = from_device(&c->s->d, parameters_weight(group, bank->routers).value,
                                       SMALL_TASKS * width * s->experts * sizeof *routers);
    double z[16] = {0}, total = 0, largest = 0;
    size_t chosen[16];
    for (size_t i = 0; i < width; i++)
        for (size_t e = 0; e < s->experts; e++)
            z[e] += gate[i] * (double)routers[(SMALL_TASK * width + i) * s->experts + e];
    for (size_t k = 0; k < s->top_k; k++) {
        chosen[k] = 0;
        for (size_t e = 0; e < s->experts; e++) {
            bool taken = false;
            for (size_t j = 0; j < k; j++)
                taken = taken || chosen[j] == e;
            if (!taken && (chosen[k] == 0 || z[e] > z[chosen[k] - 1]))
                chosen[k] = e + 1;
        }
        chosen[k]--;
        largest = k == 0 ? z[chosen[0]] : largest;
        total += exp(z[chosen[k]] - largest);
    }
    for (size_t k = 0; k < s->top_k; k++)
        add_expert(c, bank, group, chosen[k], (double)s->scale * exp(z[chosen[k]] - largest) / total, width, x, y);
}

static status checked_forward(void *state, const struct block_site *site, const struct tensor *x,
                              const struct tensor *ln2_x, struct tensor *y, struct error *failure)
{
    struct check *c = state;
    struct device *d = &c->s->d;
    const struct adapter_tower *tower = &c->adapters->towers[site->tower];
    struct arena_mark mark = arena_mark(&d->host);
    size_t n = tensor_elements(y), positions = x->shape[1], width = x->shape[2];
    assert_int_equal(positions, site->tower == TOWER_TEXT ? LONGEST : 10); /* the last block, too, is whole */
    const float *input = from_device(d, x->data, n * sizeof *input),
                *before = from_device(d, y->data, n * sizeof *before);
    double *expected = doubles(d, before, n), gate[256];
    for (size_t b = 0; b < x->shape[0]; b++) {
        gate_of(c, site, x, input, b, gate);
        for (size_t l = 0; l < positions; l++) {
            size_t at = (b * positions + l) * width;
            struct arena_mark row = arena_mark(&d->host);
            add_mixture(c, &tower->banks[site->block], tower->parameters, gate, width, input + at, expected + at);
            arena_release(&d->host, row);
        }
    }
    status result = c->inner.forward(c->inner.state, site, x, ln2_x, y, failure);
    expect_close(d, "what the experts add", y->data, expected, n, 1e-4);
    arena_release(&d->host, mark);
    c->blocks_seen++;
    return result;
}

static void means_decide(void **state)
{
    (void)state;
    struct adapter_settings settings = small_settings;
    settings.gate_input = GATE_MEAN;
    struct small s;
    struct check checks[TOWERS];
    struct block_hook hooks[TOWERS];
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    for (int t = 0; t < TOWERS; t++) {
        checks[t] = (struct check){.s = &s, .adapters = adapters, .inner = *s.hooks[t]};
        hooks[t] = *s.hooks[t];
        hooks[t].state = &checks[t];
        hooks[t].forward = checked_forward;
        s.hooks[t] = &hooks[t];
    }
    small_encode(&s);
    assert_int_equal(checks[TOWER_IMAGE].blocks_seen, 2);
    assert_int_equal(checks[TOWER_TEXT].blocks_seen, 2);
    small_adapters_close(&s, adapters);
}

/* Features of `count` prompts, on the host. */
static const float *encode_prompts(struct small *s, const int32_t *tokens, size_t count)
{
    struct texts texts;
    struct tower_pass pass;
    struct tensor features;
    const int32_t routers[] = {SMALL_TASK, SMALL_TASK, SMALL_TASK, SMALL_TASK, SMALL_TASK};
    struct encoding encoding = {.arena = &s->step,
                                .hook = s->hooks[TOWER_TEXT],
                                .router = to_device(&s->d, routers, sizeof routers),
                                .state = s->state};
    arena_reset(&s->step);
    must(texts_create(&texts, s->clip, &s->step, tokens, count, &error));
    must(clip_encode_texts(s->clip, &encoding, &texts, &pass, &features, &error));
    return from_device(&s->d, features.data, tensor_bytes(&features));
}

/* Whatever follows the end token, and however long the other prompts are. */
static void what_follows_a_prompt_changes_no_bit(void **state)
{
    (void)state;
    struct adapter_settings settings = small_settings;
    settings.gate_input = GATE_MEAN;
    settings.shared_expert = true;
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, 2, &settings);
    int32_t others[(SMALL_PROMPTS + 1) * CONTEXT] = {0};
    memcpy(others, prompts, sizeof prompts);
    for (size_t c = 0; c < SMALL_PROMPTS; c++)
        for (size_t l = (size_t)lengths[c]; l < CONTEXT; l++)
            others[c * CONTEXT + l] = (int32_t)(1 + (c + 3 * l) % 8);
    memcpy(others + SMALL_PROMPTS * CONTEXT, (const int32_t[]){START, 8, 6, 2, 1, END}, CONTEXT * sizeof *others);
    size_t embed = small_dimensions.embed;
    const float *plain = encode_prompts(&s, prompts, SMALL_PROMPTS);
    assert_memory_equal(encode_prompts(&s, others, SMALL_PROMPTS), plain, SMALL_PROMPTS * embed * sizeof *plain);
    assert_memory_equal(encode_prompts(&s, others, SMALL_PROMPTS + 1), plain, SMALL_PROMPTS * embed * sizeof *plain);
    for (size_t c = 0; c < SMALL_PROMPTS; c++)
        assert_memory_equal(encode_prompts(&s, prompts + c * CONTEXT, 1), plain + c * embed, embed * sizeof *plain);
    small_adapters_close(&s, adapters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_decide),
        cmocka_unit_test(what_follows_a_prompt_changes_no_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
