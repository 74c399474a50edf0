/* Optimizers: against plain loops, and against the numbers of public code. */
#include <math.h>
#include <string.h>

#include "models/optimizers/optimizer.h"
#include "tests/models/device.h"

/* Segments of 1, 7, 63, 65 and 40,001 values (more than one job's worth); flags 0 and 2 are set, 1 is not. */
enum { SEGMENTS = 5, VALUES = 1 + 7 + 63 + 65 + 40001, STEPS = 3 };

static const uint64_t segment_offsets[SEGMENTS + 1] = {0, 1, 8, 71, 136, VALUES};
static const int32_t segment_flag[SEGMENTS] = {0, 1, 2, 1, 0}, segment_flags[3] = {1, 0, 1};

struct moments {
    double *p, *m, *v;
    int32_t steps[SEGMENTS], changes[SEGMENTS];
};

typedef void (*reference)(struct moments *r, size_t segment, const float *g, double rate,
                          const struct update_rule *rule);

struct optimizer_case {
    struct update_rule rule;
    reference reference;
};

static double reference_direction(struct moments *r, size_t s, size_t i, double g, const struct update_rule *rule)
{
    r->m[i] = rule->beta1 * r->m[i] + (1 - rule->beta1) * g;
    r->v[i] = rule->beta2 * r->v[i] + (1 - rule->beta2) * g * g;
    double m = r->m[i] / (1 - pow(rule->beta1, r->steps[s])), v = r->v[i] / (1 - pow(rule->beta2, r->steps[s]));
    return rule->weight_decay * r->p[i] + m / (sqrt(v) + rule->epsilon);
}

static void reference_adamw(struct moments *r, size_t s, const float *g, double rate, const struct update_rule *rule)
{
    for (size_t i = segment_offsets[s]; i < segment_offsets[s + 1]; i++)
        r->p[i] -= rate * reference_direction(r, s, i, (double)g[i] + rule->l2 * r->p[i], rule);
}

static void reference_sgd(struct moments *r, size_t s, const float *g, double rate, const struct update_rule *rule)
{
    for (size_t i = segment_offsets[s]; i < segment_offsets[s + 1]; i++) {
        r->m[i] = rule->momentum * r->m[i] + (double)g[i] + (rule->weight_decay + rule->l2) * r->p[i];
        r->p[i] -= rate * r->m[i];
    }
}

static void reference_lamb(struct moments *r, size_t s, const float *g, double rate, const struct update_rule *rule)
{
    static double u[VALUES];
    double of_p = 0, of_u = 0;
    for (size_t i = segment_offsets[s]; i < segment_offsets[s + 1]; i++) {
        u[i] = reference_direction(r, s, i, (double)g[i], rule);
        of_p += r->p[i] * r->p[i];
        of_u += u[i] * u[i];
    }
    double ratio = of_p > 0 && of_u > 0 ? sqrt(of_p / of_u) : 1;
    for (size_t i = segment_offsets[s]; i < segment_offsets[s + 1]; i++)
        r->p[i] -= rate * ratio * u[i];
}

/* Moments begin at zero. */
static struct update update_of(struct device *d, size_t segments, const uint64_t *offsets, const int32_t *flag,
                               const int32_t flags[3])
{
    size_t n = offsets[segments];
    return (struct update){.segments = segments,
                           .n = n,
                           .offsets = to_device(d, offsets, (segments + 1) * sizeof *offsets),
                           .flag = to_device(d, flag, segments * sizeof *flag),
                           .flags = to_device(d, flags, 3 * sizeof *flags),
                           .steps = room(d, segments * sizeof(int32_t)),
                           .first_moment = room(d, n * sizeof(float)),
                           .second_moment = room(d, n * sizeof(float))};
}

static void step(struct device *d, const struct update_rule *rule, struct update *update, float rate)
{
    update->state = to_device(d, &(struct step_state){.learning_rate = rate}, sizeof *update->state);
    must(rule->optimizer->step(d->backend, update, rule, &error));
}

/* The third segment begins at zero, so that its norm is 0; in the first step the first one has no gradient. */
static void steps(struct device *d, const void *parameters)
{
    const struct optimizer_case *c = parameters;
    bool one_moment = c->rule.optimizer->one_moment;
    struct operand p = draw(d, VALUES, 1.0f);
    memset(p.host + segment_offsets[2], 0, (segment_offsets[3] - segment_offsets[2]) * sizeof *p.host);
    operand_renew(d, &p);
    struct moments r = {p.expected, doubles(d, NULL, VALUES), doubles(d, NULL, VALUES), {0, 5, 3}, {4}};
    struct update update = update_of(d, SEGMENTS, segment_offsets, segment_flag, segment_flags);
    update.steps = to_device(d, r.steps, sizeof r.steps);
    update.changes = to_device(d, r.changes, sizeof r.changes);
    update.values = p.device;
    update.second_moment = one_moment ? NULL : update.second_moment;
    for (int i = 0; i < STEPS; i++) {
        struct operand g = draw(d, VALUES, i == 1 ? 0.0f : 1e-2f); /* a step with no gradient counts too */
        float rate = 0.01f / (float)(i + 1);
        g.host[0] = i == 0 ? 0 : g.host[0];
        operand_renew(d, &g);
        update.gradients = g.device;
        step(d, &c->rule, &update, rate);
        for (size_t s = 0; s < SEGMENTS; s++) { /* gradients are zeroed where a step was made, else as they were */
            if (!segment_flags[segment_flag[s]])
                continue;
            r.steps[s]++;
            r.changes[s]++;
            c->reference(&r, s, g.host, (double)rate, &c->rule);
            memset(g.host + segment_offsets[s], 0, (segment_offsets[s + 1] - segment_offsets[s]) * sizeof(float));
        }
        expect_host_bits(d, "gradients", g);
        expect_integers(d, "step counts", update.steps, r.steps, SEGMENTS);
        expect_integers(d, "changes", update.changes, r.changes, SEGMENTS);
    }
    expect_operand(d, "values", p, 1e-6);
    expect_close(d, "first moment", update.first_moment, r.m, VALUES, 1e-6);
    if (!one_moment)
        expect_close(d, "second moment", update.second_moment, r.v, VALUES, 1e-6);
    for (size_t s = 1; s < SEGMENTS; s += 2)
        expect_floats(d, "values of a segment without its flag", p.device + segment_offsets[s],
                      p.host + segment_offsets[s], segment_offsets[s + 1] - segment_offsets[s]);
}

TEST(segments_whose_flag_is_set_are_stepped)
{
    const struct optimizer_case cases[] = {
        {optimizer_adamw.rule, reference_adamw},
        {{&optimizer_adamw, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1, .l2 = 1e-2},
         reference_adamw},
        {{&optimizer_adamw, .beta1 = 0, .beta2 = 0, .epsilon = 1e-3}, reference_adamw},
        {optimizer_sgd.rule, reference_sgd},
        {{&optimizer_sgd, .momentum = 0.5, .weight_decay = 0.1, .l2 = 1e-2}, reference_sgd},
        {{&optimizer_sgd, .momentum = 0}, reference_sgd},
        {optimizer_lamb.rule, reference_lamb},
        {{&optimizer_lamb, .beta1 = 0.8, .beta2 = 0.99, .epsilon = 1e-3, .weight_decay = 0.1}, reference_lamb},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        on_device(steps, &cases[i]);
}

static const bool clears[] = {false, true};

DEVICE_TEST_OF(a_step_that_is_held_changes_nothing, clears)
{
    bool clear = *(const bool *)parameters;
    const struct optimizer *optimizer;
    for (size_t i = 0; (optimizer = optimizer_at(i)) != NULL; i++) {
        struct operand p = draw(d, VALUES, 1.0f), g = draw(d, VALUES, 1.0f), m = draw(d, VALUES, 1.0f),
                       v = draw(d, VALUES, 1.0f);
        int32_t counted[SEGMENTS] = {1, 2, 3, 4, 5};
        struct update update = update_of(d, SEGMENTS, segment_offsets, segment_flag, segment_flags);
        update.steps = to_device(d, counted, sizeof counted);
        update.changes = to_device(d, counted, sizeof counted);
        update.values = p.device;
        update.gradients = g.device;
        update.first_moment = m.device;
        update.second_moment = v.device;
        update.guard = to_device(d, &(struct step_guard){.skip = 1}, sizeof *update.guard);
        update.clear_skipped = clear;
        step(d, &optimizer->rule, &update, 0.1f);
        expect_host_bits(d, "values", p);
        expect_host_bits(d, "first moment", m);
        expect_host_bits(d, "second moment", v);
        expect_integers(d, "step counts", update.steps, counted, SEGMENTS);
        expect_integers(d, "changes", update.changes, counted, SEGMENTS);
        if (clear)
            memset(g.host, 0, VALUES * sizeof(float));
        expect_host_bits(d, "gradients", g);
    }
}

/* Three tensors after three steps, of which the second begins at zero and the third has gradients near ε. adamw and sgd:
 * PyTorch 2.15, lamb: timm 1.0.31 with always_adapt=True and without max_grad_norm; all in double precision, with their
 * defaults but for the weight decay. */
enum { PUBLIC_VALUES = 7, PUBLIC_STEPS = 3, PUBLIC_TENSORS = 3 };

static const struct public_case {
    const struct optimizer *optimizer;
    double weight_decay, values[PUBLIC_VALUES];
} public_cases[] = {
    {&optimizer_adamw,
     0.1,
     {0.4224489951, -0.8772716838, 1.8374360916, -0.1570899871, 0.085521277, 0.3348867094, -0.4061902518}},
    {&optimizer_sgd, 0.1, {0.49094035, -0.9549307, 1.9103045, -0.0756724, 0.0333755, 0.4875926933, -0.4875931162}},
    {&optimizer_lamb,
     0.1,
     {0.4489934539, -0.8636123802, 1.7743086512, -0.1094524947, 0.0973098789, 0.4083245638, -0.4578536183}},
    {&optimizer_lamb,
     0,
     {0.4500959959, -0.8642562315, 1.8043443403, -0.1094995635, 0.0974478302, 0.409403002, -0.4612584665}},
};

DEVICE_TEST_OF(public_code_agrees, public_cases)
{
    const struct public_case *c = parameters;
    const uint64_t offsets[] = {0, 3, 5, PUBLIC_VALUES};
    const float values[PUBLIC_VALUES] = {0.5f, -1, 2, 0, 0, 0.5f, -0.5f}, rates[PUBLIC_STEPS] = {0.1f, 0.05f, 0.02f},
                gradients[PUBLIC_STEPS][PUBLIC_VALUES] = {{0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 4e-6f, -5e-6f},
                                                          {-0.3f, 0.1f, 0, 0.2f, 0.6f, 2e-6f, 6e-6f},
                                                          {0.05f, 0.25f, -0.4f, -0.1f, 0.3f, -1e-6f, 3e-6f}};
    struct update_rule rule = c->optimizer->rule;
    struct update update = update_of(d, PUBLIC_TENSORS, offsets, (const int32_t[3]){0}, (const int32_t[3]){1});
    update.values = to_device(d, values, sizeof values);
    rule.weight_decay = c->weight_decay;
    for (size_t i = 0; i < PUBLIC_STEPS; i++) {
        update.gradients = to_device(d, gradients[i], sizeof gradients[i]);
        step(d, &rule, &update, rates[i]);
    }
    expect_close(d, c->optimizer->name, update.values, c->values, PUBLIC_VALUES, 5e-7);
}

/* Values whose squares are beyond the range of a float, 3 and 4 in turn times a scale, and one that is no number and must
 * stay visible. All directions are 1, so the ratio is 5 / √2 scales. */
DEVICE_TEST(norms_neither_overflow_nor_vanish)
{
    enum { EACH = 66, N = 2 * EACH + 1 };
    const double scales[] = {1e-30, 1e30};
    float values[N], gradients[N], moments[N] = {0};
    for (size_t i = 0; i < N; i++) {
        values[i] = (float)((i % 2 == 0 ? 3 : 4) * scales[i / EACH % 2]);
        gradients[i] = 1;
    }
    moments[N - 1] = NAN;
    struct update update =
        update_of(d, 3, (const uint64_t[]){0, EACH, 2 * EACH, N}, (const int32_t[3]){0}, (const int32_t[3]){1});
    update.values = to_device(d, values, sizeof values);
    update.gradients = to_device(d, gradients, sizeof gradients);
    update.first_moment = to_device(d, moments, sizeof moments);
    step(d, &optimizer_lamb.rule, &update, 0.5f);
    const float *found = digest(d, update.values, sizeof values);
    for (size_t i = 0; i + 1 < N; i++)
        assert_true(fabs((double)found[i] / scales[i / EACH] - ((i % 2 == 0 ? 3 : 4) - 0.5 * 5 / sqrt(2))) < 1e-5);
    assert_true(isnan(found[N - 1]));
}
