/* Scores of blocks: norms of the gradients of all that is an expert's, and the blocks that they choose. */
#include "adapters/scores.h"

#include <math.h>
#include <string.h>

#include "tests/adapters/small_adapters.h"

/* The norm over a block's tensors by their names: those of routers are not the residual's. */
static double expected_norm(struct small *s, const struct adapters *adapters, enum tower tower, size_t block)
{
    const struct parameters *group = adapters->towers[tower].parameters;
    const float *gradients = from_device(&s->d, group->gradients, group->values_count * sizeof *gradients);
    double sum = 0;
    for (size_t i = 0; i < group->count; i++) {
        const struct parameter *p = &group->list[i];
        bool routes = strstr(p->name, "router") != NULL || strstr(p->name, "noise") != NULL;
        for (size_t v = 0; !routes && (size_t)(p->name[0] - '0') == block && v < p->size; v++)
            sum += (double)gradients[p->offset + v] * (double)gradients[p->offset + v];
    }
    return sqrt(sum);
}

static const char *const forms[] = {"", "shared_expert=true", "kind=ffn"};

ADAPTERS_TEST_OF(norms_are_of_the_experts, 2, forms)
{
    struct layer_scores scores;
    small_loss(s, true);
    layer_scores_create(&scores, 3, (const size_t[]){2, 2});
    must(layer_scores_add(&scores, adapters, 1, 0.5, &error));
    must(layer_scores_add(&scores, adapters, 1, 0.25, &error));
    must(layer_scores_add(&scores, adapters, 2, 1, &error));
    for (int t = 0; t < TOWERS; t++)
        for (size_t block = 0; block < 2; block++) {
            double norm = expected_norm(s, adapters, (enum tower)t, block);
            assert_true(norm > 0);
            assert_true(scores.values[t][block] == 0);
            assert_true(fabs(scores.values[t][2 + block] - 0.75 * norm) < 1e-9 * norm);
            assert_true(fabs(layer_scores_sum(&scores, (enum tower)t, block) - 1.75 * norm) < 1e-9 * norm);
        }
    layer_scores_free(&scores);
}

ADAPTERS_TEST(a_gradient_that_is_not_finite_is_an_error, 1, "")
{
    struct layer_scores scores;
    struct parameters *group = adapters->towers[TOWER_TEXT].parameters;
    const float bad = INFINITY;
    size_t tensors[4];
    expert_tensors(adapters, TOWER_TEXT, 1, tensors);
    must(s->d.ops->upload(s->d.backend, group->gradients + group->list[tensors[2]].offset, &bad, sizeof bad, &error));
    layer_scores_create(&scores, 1, (const size_t[]){2, 2});
    must_refuse(layer_scores_add(&scores, adapters, 0, 1, &error), ERROR_FORMAT, "block 1");
    layer_scores_free(&scores);
}

TEST(the_highest_sums_are_chosen)
{
    double image[] = {1, 4, 3, 0, /* of a second task */ 3, 0, 1, 2}, text[] = {5, 5, 0, 0};
    struct layer_scores scores = {.tasks = 2, .blocks = {4, 2}, .values = {image, text}};
    struct block_choice choice;
    layer_scores_choose(&scores, 2, &choice);
    assert_int_equal(choice.rule, BLOCKS_LISTED);
    assert_int_equal(choice.listed[TOWER_IMAGE], 3); /* 4, 4, 4, 2: the lower ones of equals */
    assert_int_equal(choice.listed[TOWER_TEXT], 3);
    image[6] = 1.5;
    layer_scores_choose(&scores, 1, &choice);
    assert_int_equal(choice.listed[TOWER_IMAGE], 4);
    assert_int_equal(choice.listed[TOWER_TEXT], 1);
    assert_int_equal(layer_scores_rank(&scores, TOWER_IMAGE, 2), 1);
    assert_int_equal(layer_scores_rank(&scores, TOWER_IMAGE, 1), 3);
    assert_int_equal(layer_scores_rank(&scores, TOWER_IMAGE, 3), 4);
    scores.blocks[TOWER_TEXT] = 0;
    layer_scores_choose(&scores, 1, &choice);
    assert_int_equal(choice.listed[TOWER_TEXT], choice.listed[TOWER_IMAGE]);
}
