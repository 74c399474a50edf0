/* Adapters in some blocks of some towers: which ones, and which of them share a bank; their gradients; that the others are the
 * original CLIP's; and the scores that choose them, norms of the gradients of all that is an expert's. */
#include "adapters/statistics.h"
#include "tests/adapters/small_adapters.h"

#include <math.h>
#include <string.h>

static const struct clip_dimensions vit_l_14 = {
    .image_blocks = 24, .image_width = 1024, .text_blocks = 12, .text_width = 768};

static struct adapter_place place_of(const char *blocks, enum adapted_towers towers)
{
    struct adapter_place place = {.towers = towers};
    must(block_choice_parse(&place.blocks, blocks, &error));
    return place;
}

TEST(rules_choose_blocks)
{
    static const struct {
        const char *rule;
        enum adapted_towers towers;
        const char *image, *text; /* a letter per block: x with, o in the bank of an x before, . without */
        size_t banks, decisions;  /* share_across_blocks, share_routing */
    } cases[] = {
        {"all", ADAPT_BOTH, "xxxxxxxxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxx", 0, 0},
        {"first_3", ADAPT_BOTH, "xxx.....................", "xxx.........", 0, 0},
        {"last_2", ADAPT_BOTH, "......................xx", "..........xx", 0, 0},
        {"last_20", ADAPT_BOTH, "....xxxxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxx", 0, 0},
        {"every_2", ADAPT_BOTH, ".x.x.x.x.x.x.x.x.x.x.x.x", ".x.x.x.x.x.x", 0, 0},
        {"every_5", ADAPT_TEXT, "........................", "....x....x..", 0, 0},
        {"0, 3 5", ADAPT_BOTH, "x..x.x..................", "x..x.x......", 0, 0},
        {"23, 0", ADAPT_BOTH, "x......................x", "x...........", 0, 0},
        {"23", ADAPT_IMAGE, ".......................x", "............", 0, 0},
        {"image.23, 2, text.0", ADAPT_BOTH, "..x....................x", "x.x.........", 0, 0},
        {"by_score_2", ADAPT_BOTH, "......................xx", "..........xx", 0, 0},
        {"all", ADAPT_BOTH, "xoooooooooooxooooooooooo", "xoooooxooooo", 2, 4},
        {"every_2", ADAPT_BOTH, ".x.o.o.o.x.o.o.o.x.o.o.o", ".x.o.x.o.x.o", 3, 0},
        {"1, 2, 3, 7", ADAPT_IMAGE, ".xox...o................", "............", 2, 2},
        {"all", ADAPT_IMAGE, "xooxooxooxooxooxooxooxoo", "............", 8, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adapter_place place = place_of(cases[i].rule, cases[i].towers);
        const char *const expected[TOWERS] = {cases[i].image, cases[i].text};
        place.banks = cases[i].banks;
        place.decisions = cases[i].decisions;
        must(adapter_place_check("adapter", &place, &vit_l_14, &error));
        for (int t = 0; t < TOWERS; t++) {
            size_t count = 0, banks = 0;
            for (size_t block = 0; block < strlen(expected[t]); block++) {
                bool has = adapter_place_has(&place, &vit_l_14, (enum tower)t, block),
                     first = adapter_place_has_bank(&place, &vit_l_14, (enum tower)t, block);
                count += has;
                banks += first;
                if (expected[t][block] != (first ? 'x' : has ? 'o' : '.'))
                    fail_msg("%s: tower %d, block %zu: %d, %d", cases[i].rule, t, block, has, first);
            }
            assert_false(adapter_place_has(&place, &vit_l_14, (enum tower)t, strlen(expected[t])));
            assert_int_equal(adapter_place_count(&place, &vit_l_14, (enum tower)t), count);
            assert_int_equal(adapter_place_count_banks(&place, &vit_l_14, (enum tower)t), banks);
        }
    }
}

TEST(rules_are_written_as_they_are_read)
{
    static const char *const rules[] = {
        "all", "first_3", "last_12", "every_2", "by_score_3", "0, 3, 63", "image.0, 3, image.63, text.2"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct block_choice choice;
        struct text text = {0};
        must(block_choice_parse(&choice, rules[i], &error));
        block_choice_write(&choice, &text);
        assert_string_equal(text.data, rules[i]);
        text_free(&text);
    }
}

TEST(what_no_model_has_is_refused)
{
    static const char *const words[] = {"",         "none",   "first",  "first_0",    "last_-1", "every_",
                                        "every_65", "64",     "-1",     "0, 0",       "0, all",  "1.5",
                                        "x, 1",     "image.", "head.1", "image.1, 1", "by_score"};
    static const struct {
        const char *blocks;
        enum adapted_towers towers;
        const char *words[2];
        size_t banks, decisions;
    } places[] = {
        {"24", ADAPT_BOTH, {"24", "24 blocks"}, 0, 0},
        {"first_13", ADAPT_TEXT, {"first_13", "12 blocks"}, 0, 0},
        {"last_25", ADAPT_IMAGE, {"last_25", "24 blocks"}, 0, 0},
        {"23", ADAPT_BOTH, {"text tower", "towers both"}, 0, 0},
        {"every_20", ADAPT_BOTH, {"every_20", "text tower"}, 0, 0},
        {"image.1, text.12", ADAPT_BOTH, {"text.12", "text tower can have adapters in only 12 blocks"}, 0, 0},
        {"image.1, text.0", ADAPT_TEXT, {"image.1", "image tower can have adapters in only 0 blocks"}, 0, 0},
        {"all", ADAPT_BOTH, {"12 blocks with adapters of the text tower", ""}, 8, 0},
        {"all", ADAPT_IMAGE, {"24 blocks", ""}, 48, 0},
        {"all", ADAPT_IMAGE, {"share_routing is 16, but the 24 blocks", ""}, 2, 16},
        {"all", ADAPT_IMAGE, {"multiple of adapter.share_across_blocks", "which is 2"}, 2, 3},
        {"all", ADAPT_IMAGE, {"which is 0", ""}, 0, 3},
    };
    struct block_choice choice;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        must_refuse(block_choice_parse(&choice, words[i], &error), ERROR_ARGUMENT, "first_N");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct adapter_place place = place_of(places[i].blocks, places[i].towers);
        place.banks = places[i].banks;
        place.decisions = places[i].decisions;
        must_refuse(adapter_place_check("adapter", &place, &vit_l_14, &error), ERROR_ARGUMENT, places[i].words[0],
                    places[i].words[1]);
    }
    const struct adapter_place place = place_of("first_13", ADAPT_TEXT);
    must_refuse(adapter_place_check("delta", &place, &vit_l_14, &error), ERROR_ARGUMENT,
                "delta.blocks is first_13 with delta.towers text");
}

/* Every tensor there is, along its gradient: also where no block below is trained. */
static const char *const gradient_forms[] = {"blocks=last_1", "blocks=first_1", "towers=image", "blocks=1 towers=text"};

GRADIENTS_TEST(gradient_forms)

/* Of adapters in both blocks of both towers, makes those that a place leaves out add nothing. */
static void silence(struct small *s, struct adapters *adapters, const struct adapter_place *place)
{
    for (int t = 0; t < TOWERS; t++)
        for (size_t b = 0; b < adapters->towers[t].blocks; b++) {
            struct parameters *group = adapters->towers[t].parameters;
            for (size_t i = 2; i < 4 && !adapter_place_has(place, &small_dimensions, (enum tower)t, b); i++) {
                const struct parameter *p = &group->list[expert_tensor(adapters, (enum tower)t, b, i)];
                small_clear(s, group, p->offset, p->size);
            }
        }
}

static const char *const parts[] = {"blocks=0", "blocks=last_1 towers=text", "towers=image"};

ADAPTERS_TEST_OF(blocks_left_out_are_the_original_clips, 2, parts)
{
    const struct adapter_settings settings = small_settings_of("");
    struct adapters *whole = small_adapters_add(s, &settings);
    for (int t = 0; t < TOWERS; t++)
        group_spread(&s->d, whole->towers[t].parameters, adapters->towers[t].parameters, 1);
    silence(s, whole, &adapters->settings.place);
    const float *expected[] = {small_features(s, TOWER_IMAGE), small_features(s, TOWER_TEXT)};
    small_adapters_use(s, adapters);
    for (int t = 0; t < TOWERS; t++)
        assert_memory_equal(small_features(s, (enum tower)t), expected[t], tensor_bytes(&s->features[t]));
    adapters_destroy(whole);
}

/* What is drawn belongs to the block, whichever others have adapters. */
ADAPTERS_TEST(blocks_start_and_draw_as_among_all, 2, "")
{
    const struct adapter_settings settings = small_settings_of("blocks=1 towers=text");
    struct adapters *part = small_adapters_add(s, &settings);
    const struct parameters *texts = part->towers[TOWER_TEXT].parameters;
    assert_false(adapters_in_tower(part, TOWER_IMAGE));
    assert_int_equal(part->towers[TOWER_TEXT].banks[0].block, 1);
    must(adapters_initialize(adapters, NULL, 7, &error));
    must(adapters_initialize(part, NULL, 7, &error));
    const struct parameter *p = &texts->list[part->towers[TOWER_TEXT].banks[0].parts[EXPERT_DOWN]],
                           *q = parameters_find(adapters->towers[TOWER_TEXT].parameters, p->name);
    expect_floats(&s->d, "W_down", texts->values + p->offset,
                  small_values(s, adapters->towers[TOWER_TEXT].parameters) + q->offset, p->size);
    adapters_destroy(part);
}

/* ---- scores ---- */

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
    size_t tensor = expert_tensor(adapters, TOWER_TEXT, 1, 2);
    must(s->d.ops->upload(s->d.backend, group->gradients + group->list[tensor].offset, &bad, sizeof bad, &error));
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
