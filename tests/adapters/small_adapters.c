#include "tests/adapters/small_adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/options.h"
#include "adapters/routers/router.h"

const struct update_rule small_rule = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};

static void set_words(struct options *options, const char *words)
{
    char *copy = strdup(words), *rest = copy, *word;
    while ((word = strsep(&rest, " ")) != NULL) {
        char *value = strchr(word, '=');
        if (value == NULL)
            continue;
        *value++ = 0;
        must(options_set(options, word, value, words, &error));
    }
    free(copy);
}

struct options *small_options(const struct option *table, const char *words)
{
    struct options *options;
    must(options_create(&options, table, &error));
    set_words(options, words);
    return options;
}

struct adapter_settings small_settings_of(const char *words)
{
    struct adapter_settings settings;
    struct options *options = small_options(adapter_options, "experts=5 freeze=none freeze_top_k=0");
    if (strstr(words, "kind=ffn") == NULL)
        set_words(options, "bottleneck=8 scale=0.5 dropout=0");
    set_words(options, words);
    must(adapter_settings_of(&settings, options, SMALL_TASKS, false, &error));
    if (settings.kind->models_activation)
        settings.activation = ACTIVATION_QUICK_GELU;
    options_destroy(options);
    return settings;
}

/* Routers are steeper than the rest, so that a small change elsewhere does not change who is chosen. */
static void draw_values(struct small *s, const struct adapter_tower *tower)
{
    struct parameters *group = tower->parameters;
    float *values = draw(&s->d, group->values_count, 0.1f).host;
    for (size_t b = 0; b < tower->blocks; b++) {
        const struct parameter *routers = &group->list[tower->banks[b].routers];
        for (size_t i = 0; router_kind_of(&tower->adapters->settings)->weights && i < routers->size; i++)
            values[routers->offset + i] *= 4;
    }
    must(s->d.ops->upload(s->d.backend, parameters_write_all(group), values, group->values_count * sizeof *values,
                          &error));
}

struct adapters *small_adapters_open(struct small *s, size_t threads, const char *words)
{
    const struct adapter_settings settings = small_settings_of(words);
    small_open(s, threads, PARAMETERS_FROZEN, ACTIVATION_QUICK_GELU);
    return small_adapters_add(s, &settings);
}

static const char *test_form;
static adapters_body test_body;

static uint64_t run_body(size_t threads)
{
    struct small s;
    struct adapters *adapters = small_adapters_open(&s, threads, test_form);
    print_message("adapters: %s\n", test_form);
    test_body(&s, adapters);
    uint64_t bits = s.d.bits;
    small_adapters_close(&s, adapters);
    return bits;
}

void with_adapters(size_t threads, const char *const *forms, size_t count, adapters_body body)
{
    test_body = body;
    for (size_t i = 0; i < count; i++) {
        test_form = forms[i];
        if (threads == ANY_THREADS)
            expect_same_bits(run_body);
        else
            run_body(threads);
    }
}

void small_adapters_use(struct small *s, const struct adapters *adapters)
{
    for (int t = 0; t < TOWERS; t++)
        s->hooks[t] = adapters_hooks(adapters, (enum tower)t);
}

struct adapters *small_adapters_add(struct small *s, const struct adapter_settings *settings)
{
    struct adapters *adapters;
    must(adapters_create(&adapters, s->d.backend, &s->d.memory, &s->clip->dimensions, settings, PARAMETERS_TRAINED,
                         &error));
    for (int t = 0; t < TOWERS; t++) {
        draw_values(s, &adapters->towers[t]);
        int32_t r = adapters_router(&adapters->settings, SMALL_TASK);
        small_set_routers(s, (enum tower)t, (const int32_t[]){r, r, r, r});
    }
    small_adapters_use(s, adapters);
    adapters_add_loss(adapters, s->loss, NULL, 1.0f);
    must(adapters_begin_task(adapters, SMALL_TASK, &error));
    return adapters;
}

void small_adapters_close(struct small *s, struct adapters *adapters)
{
    adapters_destroy(adapters);
    small_close(s);
}

void small_set_routers(struct small *s, enum tower tower, const int32_t *routers)
{
    s->router[tower] =
        to_device(&s->d, routers, (tower == TOWER_IMAGE ? SMALL_IMAGES : SMALL_PROMPTS) * sizeof *routers);
}

struct expert_slice expert_slice(const struct adapters *adapters, enum tower tower, size_t index, size_t expert)
{
    const struct parameter *p = &adapters->towers[tower].parameters->list[index];
    size_t size = p->size / p->shape[0];
    return (struct expert_slice){p->offset + expert * size, size};
}

const float *slice_values(struct small *s, const struct adapters *adapters, enum tower tower, struct expert_slice slice)
{
    return from_device(&s->d, adapters->towers[tower].parameters->values + slice.offset, slice.size * sizeof(float));
}

size_t expert_tensor(const struct adapters *adapters, enum tower tower, size_t block, size_t part)
{
    return adapters->towers[tower].banks[block].parts[part];
}

void small_write_counts(struct adapters *adapters, const int32_t *counts)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++)
            must(adapters_write_counts(adapters, (enum tower)t, b, counts, &error));
}

int64_t total_of(struct small *s, const int32_t *device, size_t n)
{
    const int32_t *values = from_device(&s->d, device, n * sizeof *values);
    int64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += values[i];
    return total;
}

/* y += weight · (W_up ReLU(W_down x + b_down) + b_up) */
void add_expert(const struct adapters *adapters, const float *values, enum tower tower, size_t block, size_t expert,
                double weight, const float *x, double *y)
{
    size_t width = adapters->towers[tower].width, m = adapters->towers[tower].hidden;
    const float *part[4];
    double hidden[64];
    for (size_t k = 0; k < 4; k++)
        part[k] = values + expert_slice(adapters, tower, expert_tensor(adapters, tower, block, k), expert).offset;
    for (size_t j = 0; j < m; j++) {
        hidden[j] = (double)part[1][j];
        for (size_t i = 0; i < width; i++)
            hidden[j] += (double)part[0][j * width + i] * (double)x[i];
    }
    for (size_t i = 0; i < width; i++) {
        double sum = (double)part[3][i];
        for (size_t j = 0; j < m; j++)
            sum += (double)part[2][i * m + j] * fmax(hidden[j], 0);
        y[i] += weight * sum;
    }
}

double deviation(const float *values, const float *around, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double x = (double)values[i] - (around != NULL ? (double)around[i] : 0);
        sum += x;
        squares += x * x;
    }
    return sqrt(squares / (double)n - pow(sum / (double)n, 2));
}

void small_adapters_check_gradients(struct small *s, struct adapters *adapters)
{
    small_loss(s, true);
    for (int t = 0; t < TOWERS; t++)
        small_check_gradients(s, t == TOWER_IMAGE ? "image, " : "text, ", adapters->towers[t].parameters);
}

void small_adapters_check(struct small *s, struct adapters *adapters)
{
    assert_int_equal(adapters_count_values(&small_dimensions, &adapters->settings), adapters_values(adapters));
    small_adapters_check_gradients(s, adapters);
    must(adapters_step(adapters, s->state, &small_rule, &error));
}
