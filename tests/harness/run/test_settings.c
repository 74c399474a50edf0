#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adapters/experts/kind.h"
#include "adapters/routers/router.h"
#include "core/text.h"
#include "harness/heads/heads.h"
#include "harness/methods/methods.h"
#include "harness/run/settings.h"
#include "harness/selectors/selectors.h"
#include "models/optimizers/optimizer.h"
#include "results/store.h"
#include "tests/test.h"

static struct error error;

static struct settings s; /* of the suite that was read last */

/* The suite of some YAML and overrides (ended by NULL), and its settings. */
static status read_suite(struct suite **suite, const char *yaml, const char *const *overrides)
{
    size_t count = 0;
    while (overrides != NULL && overrides[count] != NULL)
        count++;
    *suite = NULL;
    TRY(suite_parse(suite, yaml, strlen(yaml), "test.yaml", settings_sections, overrides, count, &error));
    return settings_read(&s, *suite, &error);
}

/* The suites that were read last. */
static struct suite *kept[4];
static size_t reads;

static struct suite **keep_next(void)
{
    struct suite **next = &kept[reads++ % (sizeof kept / sizeof *kept)];
    suite_destroy(*next);
    *next = NULL;
    return next;
}

static int forget(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        keep_next();
    return 0;
}

TEST_GROUP(NULL, forget)

static struct suite *read_whole(const char *yaml, const char *const *overrides)
{
    struct suite **suite = keep_next();
    if (read_suite(suite, yaml, overrides) != OK)
        fail_msg("%s+ %s: %s", yaml, overrides[0] != NULL ? overrides[0] : "", error.message);
    return *suite;
}

/* words: of the message. override: NULL: none */
static void must_refuse(const char *yaml, const char *override, const char *words)
{
    struct suite *suite;
    status result = read_suite(&suite, yaml, (const char *const[]){override, NULL});
    suite_destroy(suite);
    if (result != ERROR_ARGUMENT || strstr(error.message, words) == NULL)
        fail_msg("%s+ %s: %s: expected \"%s\" in \"%s\"", yaml, override != NULL ? override : "", status_name(result),
                 words, error.message);
}

static struct suite *load(const char *name, const char *override)
{
    struct suite **suite = keep_next();
    if (suite_load(suite, name, settings_sections, &override, override != NULL, &error) != OK ||
        settings_read(&s, *suite, &error) != OK)
        fail_msg("%s, %s: %s", name, override != NULL ? override : "", error.message);
    return *suite;
}

/* With overrides, or NULL. It lives until four later ones. */
#define must_read(yaml, ...) read_whole(yaml, (const char *const[]){__VA_ARGS__, NULL})

/* The defaults are those of the published system (adapters/README.md, harness/train/README.md,
 * harness/selectors/README.md). */
TEST(defaults)
{
    struct task_settings task;
    struct suite *suite = must_read("data: {root: here}\n", NULL);
    assert_int_equal(s.task_count, 11);
    assert_string_equal(s.order, "I");
    assert_int_equal(s.adapter.experts, 22);
    assert_int_equal(s.adapter.top_k, 2);
    assert_int_equal(s.adapter.bottleneck, 64);
    assert_int_equal(s.adapter.tasks, 11);
    assert_float_equal(s.adapter.scale, 0.1, 1e-9);
    assert_float_equal(s.adapter.dropout, 0.1, 1e-9);
    assert_float_equal(s.adapter.noise_epsilon, 0.01, 1e-9);
    assert_int_equal(s.adapter.input, EXPERT_INPUT_RESIDUAL);
    assert_int_equal(s.freeze.top_k, 2);
    assert_string_equal(s.merge.policy->name, "most_used");
    assert_int_equal(s.merge.every, 100);
    assert_int_equal(s.merge.moments, MOMENTS_KEEP);
    assert_string_equal(s.method->name, "moe_adapters");
    assert_ptr_equal(s.selector.kind, selector_kind_at(0));
    assert_int_equal(s.selector.decision, DECIDE_PER_IMAGE);
    assert_int_equal(s.selector.decision_batch, 128);
    assert_int_equal(s.selector.iterations, 300);
    assert_int_equal(s.selector.code, 100);
    assert_true(fabs(s.selector.quantile - 0.99) < 1e-12 && s.selector.threshold == 0 && s.selector.l2 == 1e-4);
    assert_int_equal(s.checkpoints, CHECKPOINTS_LAST);
    assert_int_equal(s.stated.config.activation, ACTIVATION_NONE);
    assert_int_equal(s.stated.config.image_heads, 0);
    task = task_settings_of(suite, "dtd");
    assert_string_equal(task.reader, "dtd");
    assert_string_equal(task.root, "here");
    assert_int_equal(task.iterations, 1000);
    assert_int_equal(task.schedule_end, 1000);
    assert_int_equal(task.warmup, 100);
    assert_int_equal(task.batch, 64);
    assert_true(task.rate == 1e-3 && task.rule.weight_decay == 0);
    assert_float_equal(task.smoothing, 0.2, 1e-7);
    assert_int_equal(settings_seeds(suite), 1);
    assert_int_equal(settings_seed(suite, 0), 1);
}

TEST(tasks_inherit_and_override)
{
    static const char yaml[] = "data: {order: [dtd, again, mnist], root: here}\n"
                               "training: {iterations: 50, batch: 7, learning_rate: 0.25}\n"
                               "tasks:\n"
                               "  again: {reader: dtd, root: there, iterations: 20, reference_iterations: yes}\n"
                               "  mnist: {learning_rate: 0.5}\n";
    struct task_settings dtd, again, mnist;
    struct suite *suite = must_read(yaml, "tasks.mnist.warmup=3");
    dtd = task_settings_of(suite, "dtd");
    again = task_settings_of(suite, "again");
    mnist = task_settings_of(suite, "mnist");
    assert_true(dtd.rate == 0.25 && again.rate == 0.25 && mnist.rate == 0.5);
    assert_true(dtd.iterations == 50 && mnist.iterations == 50 && dtd.batch == 7 && again.batch == 7);
    assert_int_equal(again.iterations, 21); /* the reference's one step more, on a schedule of 20 */
    assert_int_equal(again.schedule_end, 20);
    assert_string_equal(again.reader, "dtd");
    assert_string_equal(again.root, "there");
    assert_string_equal(dtd.root, "here");
    assert_int_equal(mnist.warmup, 3);
    assert_int_equal(dtd.warmup, 100);
}

/* 50,000 images in batches of 128 are 391 iterations, the last of 80 images. */
TEST(epochs_become_iterations)
{
    static const char yaml[] = "data: {order: [dtd, mnist]}\n"
                               "training: {epochs: 300, warmup_epochs: 30, batch: 128, warmup: 7}\n"
                               "tasks: {mnist: {epochs: 0, iterations: 20, warmup_epochs: 0}}\n";
    struct task_settings dtd, mnist;
    struct suite *suite = must_read(yaml, NULL);
    dtd = task_settings_of(suite, "dtd");
    mnist = task_settings_of(suite, "mnist");
    task_settings_count(&dtd, 50000);
    task_settings_count(&mnist, 50000);
    assert_true(dtd.iterations == 300 * 391 && dtd.schedule_end == 300 * 391 && dtd.warmup == 30 * 391);
    assert_true(mnist.iterations == 20 && mnist.warmup == 7 && mnist.epoch_length == 391);
    task_settings_count(&dtd, 49920); /* some could not be read */
    assert_int_equal(dtd.warmup, 30 * 390);
}

TEST(orders_have_names)
{
    struct suite *one = must_read("data: {order: I}\n", NULL);
    assert_string_equal(s.order, "I");
    struct suite *same = must_read("data: {root: x}\n", NULL);
    assert_string_equal(suite_settings_hash(one), suite_settings_hash(same));
    struct suite *two = must_read("data: {order: I}\n", "data.order=II");
    assert_string_equal(s.order, "II");
    assert_int_equal(s.task_count, 11);
    assert_string_equal(options_list_item(suite_options(two, "data"), "order", 0), "stanford_cars");
    assert_string_equal(options_list_item(suite_options(two, "data"), "order", 10), "cifar100");
    assert_non_null(strstr(suite_text(two), "order: [stanford_cars, food, "));
    must_read("data: {order: [dtd, mnist]}\ntasks: {dtd: {warmup: 1}}\n", NULL);
    assert_string_equal(s.order, "dtd, mnist");
    must_read("data: {order: [dtd, mnist], order_name: mine}\n", NULL);
    assert_string_equal(s.order, "mine");
}

TEST(a_setting_follows_from_shots)
{
    must_read("data: {order: [dtd]}\n", NULL);
    assert_string_equal(s.setting, "full_shot");
    must_read("data: {shots: 5}\n", NULL);
    assert_string_equal(s.setting, "few_shot");
    assert_int_equal(s.shots, 5);
    must_read("data: {shots: 5, setting: few_shot}\n", NULL);
    must_read("data: {shots: 16}\nevaluation: {label_space: all}\n", NULL);
    assert_string_equal(s.setting, "x_tail");
    assert_int_equal(s.label_space, LABEL_SPACE_ALL);
    must_read("data: {shots: 16}\nevaluation: {label_space: seen}\n", NULL);
    assert_string_equal(s.setting, "class_incremental");
}

#define LINEAR "head: {name: linear}\nmethod: {name: supervised}\ndata: {order: [dtd]}\n"
#define SCRATCH LINEAR "model: {weights: scratch}\n"

TEST(heads_go_with_methods_and_models)
{
    struct suite *suite, *same;
    suite = must_read("data: {order: [dtd]}\n", NULL);
    same = must_read("data: {order: [dtd]}\nhead: {name: text}\n", NULL);
    assert_string_equal(suite_text(suite), suite_text(same));
    assert_null(strstr(suite_text(suite), "head:"));
    assert_string_equal(s.head->name, "text");
    suite = must_read(SCRATCH, "model.width=128");
    assert_string_equal(s.head->name, "linear");
    assert_int_equal(s.scratch.width, 128);
    assert_int_equal(s.scratch.heads, 2);
    assert_int_equal(s.scratch.hidden, 512);
    assert_int_equal(s.scratch.activation, ACTIVATION_GELU);
    same = must_read(LINEAR, NULL);
    assert_int_equal(s.scratch.width, 0);
    assert_null(strstr(suite_text(same), "width"));
    assert_string_not_equal(suite_settings_hash(suite), suite_settings_hash(same));
    must_read(SCRATCH, "model.width=70", "model.heads=7");
    assert_int_equal(s.scratch.heads, 7);
}

TEST(one_dataset_is_cut_into_tasks)
{
    must_read("data: {order: [dtd], split_by: labels, parts: 7, similarity: apart}\n", NULL);
    assert_true(s.split.cut == CUT_BY_LABELS && s.split.goal == PARTITION_APART);
    assert_int_equal(s.task_count, 7);
    assert_int_equal(s.adapter.tasks, 7);
    assert_string_equal(s.order, "dtd");
}

TEST(one_dataset_is_cut_by_an_order)
{
    static const char yaml[] = "data: {order: [tiny_imagenet], split_by: order, class_order: tinyimagenet, first: 100, "
                               "parts: 5}\n";
    struct suite *again, *suite = must_read(yaml, NULL);
    assert_int_equal(s.split.cut, CUT_BY_ORDER);
    assert_int_equal(s.task_count, 6);
    assert_string_equal(options_as_text(suite_options(suite, "data"), "class_order"), "tinyimagenet");
    again = must_read(suite_text(suite), NULL); /* the numbers, not their name */
    assert_string_equal(suite_settings_hash(again), suite_settings_hash(suite));
    suite = must_read("data: {order: [dtd], split_by: order}\n", NULL);
    assert_int_equal(s.task_count, 10);
    must_read(suite_text(suite), NULL); /* an empty list */
}

TEST(one_router_and_no_selector)
{
    must_read("adapter: {routers: one}\nselector: {kind: none}\n", NULL);
    assert_int_equal(s.task_count, 11);
    assert_int_equal(s.adapter.tasks, 1);
    assert_false(settings_select(&s));
}

TEST(templates_for_all_or_one)
{
    struct suite *suite;
    struct task_settings task;
    static const char yaml[] = "data: {order: [dtd, mnist, food], template: \"a {}\"}\n"
                               "tasks: {mnist: {template: \"the number {}\"}}\n";
    suite = must_read(yaml, NULL);
    task = task_settings_of(suite, "dtd");
    assert_string_equal(task.template, "a {}");
    task = task_settings_of(suite, "mnist");
    assert_string_equal(task.template, "the number {}");
    suite = must_read("data: {order: [dtd]}\n", NULL);
    task = task_settings_of(suite, "dtd");
    assert_null(task.template);
}

/* A split for all datasets, and another for one of them. */
TEST(a_split_for_all_or_one)
{
    static const char yaml[] = "data: {order: [dtd, mnist], split: coop}\ntasks: {mnist: {split: torchvision}}\n";
    struct suite *suite = must_read(yaml, NULL);
    assert_string_equal(options_text(suite_entry(suite, "tasks", "dtd"), "split"), "coop");
    assert_string_equal(options_text(suite_entry(suite, "tasks", "mnist"), "split"), "torchvision");
}

/* --- Ranges --- */

static status try_value(const char *section, bool task, const char *name, double value)
{
    char override[200];
    struct suite *suite;
    snprintf(override, sizeof override, "%s%s.%s=%.17g", section, task ? ".mnist" : "", name, value);
    status result = read_suite(&suite, "data: {order: [mnist]}\n", (const char *const[]){override, NULL});
    suite_destroy(suite);
    return result;
}

static size_t check_ranges(const struct suite_section *section, const struct option *options, bool task)
{
    size_t checked = 0;
    for (const struct option *o = options; o->name != NULL; o++) {
        if ((o->type != OPTION_INTEGER && o->type != OPTION_REAL) || (o->minimum == 0 && o->maximum == 0))
            continue;
        const double beyond[] = {o->minimum - 1, o->maximum + (o->type == OPTION_INTEGER ? 1 : 0.5),
                                 o->maximum * 2 + 1};
        for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
            if (try_value(section->name, task, o->name, beyond[i]) == OK)
                fail_msg("%s.%s accepts %g; its range is %g to %g", section->name, o->name, beyond[i], o->minimum,
                         o->maximum);
            if (strstr(error.message, o->name) == NULL)
                fail_msg("%s.%s=%g is refused without its name: %s", section->name, o->name, beyond[i], error.message);
        }
        if (options_find(options, o->name) != o)
            fail_msg("%s.%s is declared twice", section->name, o->name);
        checked++;
    }
    return checked;
}

TEST(every_range_is_kept)
{
    size_t checked = 0;
    for (const struct suite_section *section = settings_sections; section->name != NULL; section++) {
        checked += check_ranges(section, section->options, section->each_of != NULL);
        for (const struct suite_section *from = settings_sections; section->inherits != NULL && from->name != NULL;
             from++)
            if (strncmp(from->name, section->inherits, strcspn(section->inherits, "|")) == 0)
                checked += check_ranges(section, from->options, true);
    }
    assert_true(checked > 30);
}

TEST(bounds_are_inside)
{
    assert_int_equal(try_value("adapter", false, "freeze_top_k", 0), OK);
    assert_int_equal(try_value("adapter", false, "experts", 1024), OK);
    assert_int_equal(try_value("adapter", false, "experts", 2), OK);
    assert_int_equal(try_value("training", false, "warmup", 1e9), OK);
    assert_int_equal(try_value("tasks", true, "label_smoothing", 1), OK);
    assert_int_equal(try_value("selector", false, "quantile", 0), OK);
}

/* On a command line or in a row, epochs are meant in place of the iterations that the file states, and back. */
TEST(a_later_place_replaces_iterations)
{
    static const struct {
        const char *text, *overrides[3], *iterations, *epochs;
    } cases[] = {
        {"training: {iterations: 5}\n", {"training.epochs=2"}, "1000", "2"},
        {"training: {epochs: 2}\n", {"training.iterations=5"}, "5", "0"},
        {"training: {iterations: 5}\n", {"training.epochs=0"}, "5", "0"},
        {"training: {iterations: 5}\nrows: {Long: {training.epochs: 3}}\n", {"run.row=Long"}, "1000", "3"},
        {"training: {iterations: 5}\nrows: {Long: {training.epochs: 3}}\n",
         {"run.row=Long", "training.iterations=7"},
         "7",
         "0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct suite *suite = read_whole(cases[i].text, cases[i].overrides);
        assert_string_equal(options_as_text(suite_options(suite, "training"), "iterations"), cases[i].iterations);
        assert_string_equal(options_as_text(suite_options(suite, "training"), "epochs"), cases[i].epochs);
    }
}

/* Keys of a method that was not chosen are unknown; those of the chosen one are read. */
TEST(a_method_brings_its_keys)
{
    must_read("method: {name: finetune, train: adapters}\n", NULL);
    assert_int_equal(method_groups(s.method, s.method_options), GROUP_ADAPTERS);
    must_read("method: {name: finetune}\n", NULL);
    assert_int_equal(method_groups(s.method, s.method_options), GROUPS_TOWERS);
}

#define CLASSIFIER(method) "head: {name: linear}\ndata: {order: [dtd]}\nmodel: {weights: scratch}\nmethod: " method "\n"

/* The values of a paper are defaults of other sections: a suite's own words win, and its resolved text says it all. */
TEST(a_mixture_brings_values)
{
    struct suite *suite, *again;
    suite = must_read(CLASSIFIER("{name: supervised, ffn: ewa}"), NULL);
    assert_int_equal(method_groups(s.method, s.method_options), GROUP_ADAPTERS | GROUP_IMAGE_TOWER | GROUP_HEAD);
    assert_string_equal(s.adapter.kind->name, "ffn");
    assert_string_equal(s.adapter.router->name, "random_uniform");
    assert_int_equal(s.adapter.experts, 4);
    assert_int_equal(s.adapter.place.blocks.rule, BLOCKS_EVERY);
    assert_string_equal(s.merge.policy->name, "ewa");
    assert_true(options_real(s.merge.policy_options, "rate") > 0);
    again = must_read(suite_text(suite), NULL);
    assert_string_equal(suite_settings_hash(again), suite_settings_hash(suite));
    assert_string_equal(suite_text(again), suite_text(suite));
    must_read(CLASSIFIER("{name: supervised, ffn: rmoe}"), "adapter.experts=16");
    assert_int_equal(s.adapter.experts, 16);
    assert_int_equal(s.adapter.top_k, 1);
    assert_int_equal(s.adapter.balance, BALANCE_LOSS_RMOE);
    assert_int_equal(s.adapter.place.blocks.rule, BLOCKS_BY_SCORE);
    assert_int_equal(s.adapter.place.blocks.n, 3);
    assert_true(s.adapter.init_noise == 0.01f && s.adapter.score_noise == 0.001f && !s.adapter.absolute_noise);
    assert_string_equal(s.merge.policy->name, "none");
    must_read(CLASSIFIER("{name: supervised, ffn: widenet}"), NULL);
    assert_int_equal(s.scratch.share_groups, 1);
    assert_int_equal(s.adapter.place.banks, 1);
    assert_int_equal(s.adapter.place.decisions, 0);
    assert_string_equal(options_text(s.head_options, "pool"), "mean_patches");
    must_read(CLASSIFIER("{name: supervised, ffn: rmoe}"), "adapter.balance_loss=none", "adapter.balance_weight=0.01");
}

/* Without mixtures nothing of them is in a suite's hash, as before there were any. */
TEST(a_dense_classifier_has_no_mixture_in_its_hash)
{
    struct suite *plain = must_read(CLASSIFIER("{name: supervised}"), NULL);
    struct suite *dense =
        must_read(CLASSIFIER("{name: supervised, ffn: dense, dropout: 0}") "adapter: {experts: 7}\n", NULL);
    assert_int_equal(method_groups(s.method, s.method_options), GROUP_IMAGE_TOWER | GROUP_HEAD);
    assert_string_equal(suite_settings_hash(plain), suite_settings_hash(dense));
    assert_null(strstr(suite_text(dense), "adapter:"));
    assert_null(strstr(suite_text(dense), "merge:"));
}

/* Sections that a method does not use say nothing about its runs: they are not in the hash and not in the text. */
TEST(sections_belong_to_methods)
{
    static const struct {
        const char *method, *key;
        bool used;
    } cases[] = {{"moe_adapters", "adapter.experts=7", true},
                 {"moe_adapters", "merge.every=7", true},
                 {"moe_adapters", "combine.name=ties", true},
                 {"moe_adapters", "selector.code=7", true},
                 {"zero_shot", "adapter.experts=7", false},
                 {"zero_shot", "merge.every=7", false},
                 {"continual_ft", "combine.name=ties", false},
                 {"continual_ft", "selector.code=7", false},
                 {"continual_ft", "training.batch=7", true},
                 {"finetune", "adapter.experts=7", false},
                 {"finetune,train=adapters", "adapter.experts=7", true},
                 {"finetune,train=adapters", "merge.every=7", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128], section[16];
        bool adapters = strstr(cases[i].method, "train=") != NULL;
        snprintf(text, sizeof text, "method: {name: %.*s%s}\n", (int)strcspn(cases[i].method, ","), cases[i].method,
                 adapters ? ", train: adapters" : "");
        const struct suite *plain = must_read(text, NULL), *changed = must_read(text, cases[i].key);
        bool differ = strcmp(suite_settings_hash(plain), suite_settings_hash(changed)) != 0;
        snprintf(section, sizeof section, "\n%.*s:", (int)strcspn(cases[i].key, "."), cases[i].key);
        bool shown = strstr(suite_text(changed), section) != NULL;
        struct setting_row *rows;
        size_t count, of_section = 0;
        suite_settings(changed, &rows, &count);
        for (size_t k = 0; k < count; k++)
            of_section += strncmp(rows[k].key, cases[i].key, strcspn(cases[i].key, ".") + 1) == 0;
        suite_settings_free(rows, count);
        assert_true((of_section > 0) == cases[i].used);
        if (differ != cases[i].used || shown != cases[i].used)
            fail_msg("%s, %s: expected it %s", cases[i].method, cases[i].key, cases[i].used ? "used" : "left out");
    }
}

static bool has_row(const struct suite *suite, const char *key)
{
    struct setting_row *rows;
    size_t count;
    bool found = false;
    suite_settings(suite, &rows, &count);
    for (size_t k = 0; k < count; k++)
        found |= strlen(rows[k].key) == strcspn(key, "=") && strncmp(rows[k].key, key, strlen(rows[k].key)) == 0;
    suite_settings_free(rows, count);
    return found;
}

/* Nor do keys that the policy, the schedule, the selector or the method does not read: two runs that differ in them are one. */
TEST(keys_belong_to_choices)
{
    static const struct {
        const char *text, *key;
        bool used;
    } cases[] = {{"merge: {policy: none}\n", "merge.every=7", false},
                 {"merge: {policy: none}\n", "merge.schedule=plateau", false},
                 {"merge: {policy: none}\n", "merge.moments=reset", false},
                 {"merge: {policy: none}\n", "combine.name=fisher", false},
                 {"merge: {policy: none}\n", "merge.policy=random", true},
                 {"merge: {policy: ewa}\n", "merge.every=7", false},
                 {"merge: {policy: ewa}\n", "merge.until=0.5", true},
                 {"merge: {policy: most_used}\n", "merge.every=7", true},
                 {"merge: {policy: most_used, schedule: end_of_task}\n", "merge.every=7", false},
                 {"merge: {policy: most_used, schedule: plateau}\n", "merge.every=7", true},
                 {"merge: {policy: most_used, schedule: plateau}\n", "merge.least_fall=0.5", true},
                 {"adapter: {freeze: none}\n", "adapter.freeze_top_k=1", false},
                 {"adapter: {freeze: random}\n", "adapter.freeze_top_k=1", true},
                 {"selector: {kind: clip}\n", "selector.code=7", true},
                 {"selector: {kind: clip}\n", "selector.shrinkage=0.5", false},
                 {"selector: {kind: clip}\n", "selector.decision_batch=7", false},
                 {"selector: {kind: clip, decision: per_batch}\n", "selector.decision_batch=7", true},
                 {"selector: {kind: clip}\n", "selector.quantile=0.5", true},
                 {"selector: {kind: clip, threshold: 0.1}\n", "selector.quantile=0.5", false},
                 {"selector: {kind: gaussian}\n", "selector.code=7", false},
                 {"selector: {kind: gaussian}\n", "selector.shrinkage=0.5", true},
                 {"selector: {kind: oracle}\n", "selector.decision=per_batch", false},
                 {"data: {shots: 0}\n", "data.short_classes=repeat", false},
                 {"data: {shots: 5}\n", "data.short_classes=repeat", true},
                 {"method: {name: zero_shot}\n", "training.learning_rate=0.1", false},
                 {"method: {name: zero_shot}\n", "tasks.dtd.batch=7", false},
                 {"method: {name: zero_shot}\n", "tasks.dtd.template=paper", true},
                 {"method: {name: rail_primal}\n", "training.batch=7", false},
                 {"method: {name: lwf}\n", "tasks.dtd.batch=7", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct suite *plain = must_read(cases[i].text, NULL), *changed = must_read(cases[i].text, cases[i].key);
        bool differ = strcmp(suite_settings_hash(plain), suite_settings_hash(changed)) != 0;
        if (differ != cases[i].used || has_row(changed, cases[i].key) != cases[i].used)
            fail_msg("%s%s: expected it %s", cases[i].text, cases[i].key, cases[i].used ? "read" : "left out");
    }
}

/* A key that a method would ignore is a mistake. */
TEST(augmentation_needs_batches)
{
    static const char *const keys[] = {"training.randaugment=2", "training.random_erasing=0.1",
                                       "training.mixup=1",       "training.flip=0.5",
                                       "tasks.dtd.cutmix=1",     "training.autoaugment=cifar10"},
                             *const methods[] = {"zero_shot", "rail_primal", "rail_dual", "continual_ft", "replay"};
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            char text[128], key[32];
            snprintf(text, sizeof text, "data: {order: [mnist, dtd]}\nmethod: {name: %s}\n", methods[m]);
            snprintf(key, sizeof key, "%.*s", (int)strcspn(keys[k], "="), keys[k]);
            if (m < 3)
                must_refuse(text, keys[k], key);
            else
                must_read(text, keys[k]);
            assert_true(m >= 3 || strstr(error.message, methods[m]) != NULL);
        }
}

/* A strength or a colour of what is not done would look as if it were done. */
TEST(details_need_what_they_are_of)
{
    struct suite *suite;
    struct task_settings task;
    suite = must_read("training: {randaugment_magnitude: 15}\n", "tasks.dtd.randaugment=2");
    task = task_settings_of(suite, "dtd");
    assert_int_equal(task.augmentation.magnitude, 15);
    must_read("training: {randaugment: 2, randaugment_magnitude: 15}\n", "tasks.dtd.randaugment=0");
}

TEST(seeds)
{
    static const char *const bad[] = {"run.seeds=1,x", "run.seeds=-1", "run.seeds=1.5",
                                      "run.seeds=", "run.seeds=3,1,03"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        must_refuse("data: {order: [dtd]}\n", bad[i], "run.seeds");
    struct suite *suite = must_read("run: {seeds: [7, 0]}\n", NULL);
    assert_int_equal(settings_seeds(suite), 2);
    assert_int_equal(settings_seed(suite, 1), 0);
}

/* A task may have an optimizer of its own, and the momentum of all of them. */
TEST(tasks_choose_their_optimizer)
{
    struct suite *suite;
    struct task_settings task;
    suite = must_read("training: {momentum: 0.5, weight_decay: 0.1}\n", "tasks.dtd.optimizer=sgd");
    assert_false(s.one_moment);
    task = task_settings_of(suite, "dtd");
    assert_ptr_equal(task.rule.optimizer, &optimizer_sgd);
    assert_true(task.rule.momentum == 0.5 && task.rule.weight_decay == 0.1);
    task = task_settings_of(suite, "mnist");
    assert_ptr_equal(task.rule.optimizer, &optimizer_adamw);
    assert_true(task.rule.beta1 == 0.9 && task.rule.beta2 == 0.999 && task.rule.epsilon == 1e-8);
    suite = must_read("training: {optimizer: sgd}\n", NULL);
    assert_true(s.one_moment);
    task = task_settings_of(suite, "mnist");
    assert_true(task.rule.momentum == 0.9);
    suite = must_read("training: {optimizer: lamb}\n", NULL);
    assert_false(s.one_moment);
    task = task_settings_of(suite, "dtd");
    assert_ptr_equal(task.rule.optimizer, &optimizer_lamb);
    assert_true(task.rule.epsilon == 1e-6);
}

static bool hash_differs(const char *override)
{
    const struct suite *plain = must_read("data: {order: [dtd]}\n", NULL),
                       *other = must_read("data: {order: [dtd]}\n", override);
    return strcmp(suite_settings_hash(plain), suite_settings_hash(other)) != 0;
}

/* Of each of the overrides, which blanks separate. */
static void expect_in_hash(const char *overrides, bool expected)
{
    char override[64];
    for (int size; sscanf(overrides, "%63s%n", override, &size) == 1; overrides += size)
        if (hash_differs(override) != expected)
            fail_msg("%s: expected it %s the hash", override, expected ? "in" : "outside");
}

/* A run that is told apart by threads or folders would not go on after a stop. The contents of weights and the images that can be
 * read are inputs (inputs.h). What is off is what runs did before there were these keys. */
TEST(what_does_not_change_numbers_is_not_in_the_hash)
{
    expect_in_hash("run.threads=3 run.seeds=4,5 run.backend=cuda model.weights=elsewhere.safetensors "
                   "model.vocabulary=elsewhere.txt tasks.dtd.root=elsewhere run.device=1 run.precision=f32 "
                   "data.root=elsewhere run.checkpoint_every=7 data.on_unreadable=skip "
                   "tasks.dtd.on_unreadable=skip run.evaluation_batch=1 run.keep_features=no "
                   "evaluation.patch_images=4 training.epochs=0 adapter.routers=per_task "
                   "training.optimizer=adamw training.momentum=0.9 data.order_name=mine "
                   "training.randaugment=0 training.randaugment_magnitude=9 training.random_erasing=0 "
                   "training.random_erasing_fill=mean training.mixup=0 training.cutmix=0 "
                   "training.crop_scale=0.9 training.flip=0 training.autoaugment=none "
                   "training.warmup_epochs=0",
                   false);
    expect_in_hash("model.activation=gelu run.precision=bf16 data.split=coop data.on_missing=skip "
                   "data.shots=16 evaluation.label_space=all evaluation.label_space=seen training.epochs=1 "
                   "training.optimizer=sgd tasks.dtd.optimizer=lamb tasks.dtd.epochs=1 training.batch=32 "
                   "tasks.dtd.warmup=5 selector.decision=per_batch merge.moments=reset "
                   "training.randaugment=2 training.random_erasing=0.25 training.mixup=0.8 training.cutmix=1 "
                   "tasks.dtd.mixup=0.8 training.crop_scale=0.05 training.flip=0.5 "
                   "training.autoaugment=cifar10 training.warmup_epochs=1",
                   true);
    assert_true(suite_key_incidental(settings_sections, "run.row", "ZSCL"));
    assert_true(suite_key_incidental(settings_sections, "evaluation.patch_images", "4")); /* also where it is read */
}

/* Reads every row of a suite, each of which is another run; false: it has none. */
static bool has_rows(const char *name)
{
    struct suite_rows rows;
    assert_int_equal(suite_load_rows(&rows, name, settings_sections, &error), OK);
    bool any = rows.names.count > 0;
    enum { MOST = 64 };
    char runs[MOST][256]; /* settings and weights */
    assert_in_range(rows.names.count, 0, MOST);
    for (size_t i = 0; i < rows.names.count; i++) {
        char row[128];
        snprintf(row, sizeof row, "%s=%s", rows.key, rows.names.items[i]);
        const struct suite *suite = load(name, row);
        snprintf(runs[i], sizeof runs[i], "%s %s", suite_settings_hash(suite), s.weights);
        for (size_t k = 0; k < i; k++)
            if (strcmp(runs[k], runs[i]) == 0)
                fail_msg("%s: %s is the same run as %s", name, rows.names.items[i], rows.names.items[k]);
    }
    suite_rows_free(&rows);
    return any;
}

/* Every suite that ships can be read, and is what its name says. */
TEST(shipped_suites)
{
    static const struct {
        const char *name, *order, *setting;
        size_t tasks, experts;
    } expected[] = {
        {"cifar100_labels", "cifar100", "full_shot", 10, 55},
        {"cil_cifar100_10", "cifar100", "class_incremental", 10, 2},
        {"cil_cifar100_20", "cifar100", "class_incremental", 20, 2},
        {"cil_cifar100_50", "cifar100", "class_incremental", 50, 2},
        {"mini_cil", "cifar100", "class_incremental", 5, 2},
        {"mini_labels", "cifar100", "full_shot", 5, 22},
        {"mini_xtail", "aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397",
         "x_tail", 10, 22},
        {"xtail", "aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397",
         "x_tail", 10, 55},
        {"mini", "I", "full_shot", 11, 22},
        {"mini_continual_ft", "I", "full_shot", 11, 22},
        {"mini_few_shot", "I", "few_shot", 11, 22},
        {"mini_finetune", "I", "full_shot", 11, 22},
        {"mini_order2", "II", "full_shot", 11, 22},
    };
    size_t known = sizeof expected / sizeof *expected;
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite shipped = suite_library_get(i);
        size_t k = 0;
        if (has_rows(shipped.name))
            continue;
        load(shipped.name, NULL);
        while (k < known && strcmp(expected[k].name, shipped.name) != 0)
            k++;
        if (k < known) {
            assert_string_equal(s.order, expected[k].order);
            assert_string_equal(s.setting, expected[k].setting);
            assert_int_equal(s.task_count, expected[k].tasks);
            assert_int_equal(s.adapter.experts, expected[k].experts);
        }
    }
}

static const char *x_tail_prompt(const char *task)
{
    return strcmp(task, "eurosat") == 0 ? "a photo of a {} satellite location."
           : strcmp(task, "mnist") == 0 ? "a photo of a number: \"{}\"."
                                        : "a photo of a {}.";
}

/* A suite that uses another one has the other's values and rows but for its own. */
TEST(a_suite_uses_another)
{
    struct suite *suite = must_read("use: mini_cil\ndata: {parts: 2}\ntraining: {batch: 4}\n", NULL);
    assert_int_equal(s.task_count, 2);
    assert_int_equal(s.label_space, LABEL_SPACE_SEEN);
    assert_int_equal(options_integer(suite_options(suite, "training"), "batch"), 4);
    assert_int_equal(options_integer(suite_options(suite, "training"), "epochs"), 3);
    suite = must_read("use: mini_cil_table\ntraining: {batch: 4}\n", "training.batch=5", "run.row=LwF");
    assert_string_equal(s.method->name, "lwf");
    assert_int_equal(options_integer(suite_options(suite, "training"), "batch"), 5);
    static const char rows[] = "use: mini_cil_table\nrows: {Mine: {method.name: ewc}}\n";
    must_read(rows, "run.row=Mine");
    assert_string_equal(s.method->name, "ewc");
    must_refuse(rows, "run.row=LwF", "unknown row \"LwF\""); /* the other's rows are gone */
}

/* faults: suites, and what their messages contain. */
static void expect_faults(const char *const faults[][2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        must_refuse(faults[i][0], NULL, faults[i][1]);
}

TEST(what_a_suite_cannot_use)
{
    static const char *const faults[][2] = {
        {"data: {root: a}\nuse: mini_cill\n", "test.yaml:2: use: unknown suite \"mini_cill\""},
        {"use: [mini]\n", "test.yaml:1:6: expected the name of a suite"},
        {"use: ~\n", "test.yaml:1:6: expected the name of a suite"},
        {"use: mini\nuse: mini_cil\n", "\"use\" is repeated"},
        {"use: cil_cub\n", "test.yaml:1: use: the suite cil_cub uses cil_imagenet_r itself"},
    };
    expect_faults(faults, sizeof faults / sizeof *faults);
}

TEST(what_shots_of_tasks_cannot_be)
{
    static const char *const faults[][2] = {
        {"data: {order: [dtd, mnist], task_shots: [1]}\n", "expected a number for each of 2 tasks, found 1"},
        {"data: {order: [dtd, mnist], task_shots: [1, -1]}\n", "whole numbers from 0, found \"-1\""},
        {"data: {order: [dtd, mnist], task_shots: [1, few]}\n", "found \"few\""},
        {"data: {order: [dtd, mnist], task_shots: [1, 2], shots: 5}\n", "takes the place of data.shots, which is 5"},
    };
    expect_faults(faults, sizeof faults / sizeof *faults);
    must_read("data: {order: [dtd, mnist], task_shots: [0, 0]}\n", NULL);
    assert_string_equal(s.setting, "full_shot");
}

/* Suites whose rows are compared with published ones of MA's or ZSCL's code name the table of its faults. */
TEST(suites_beside_published_rows_name_the_faults)
{
    size_t found = 0;
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite shipped = suite_library_get(i);
        bool beside = has_rows(shipped.name) && strncmp(shipped.name, "mini_", 5) != 0 &&
                      (strncmp(shipped.table, "MA's", 4) == 0 || strncmp(shipped.table, "RAIL's", 6) == 0 ||
                       strncmp(shipped.table, "Park", 4) == 0);
        found += beside;
        if ((strstr(shipped.text, "# Faults of the public code") != NULL) != beside)
            fail_msg("%s: expected %s line about faults of the public code", shipped.name, beside ? "a" : "no");
    }
    assert_int_equal(found, 11);
}

/* RAIL's X-TAIL: 16 images per class of CoOp's splits, drawn again where there are fewer, one template, all classes; the
 * names of two datasets are longer than MTIL's. */
TEST(x_tail_as_published)
{
    static const char *const suites[] = {"xtail", "xtail_table", "mini_xtail", "mini_xtail_table"};
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        struct suite *suite = load(suites[i], has_rows(suites[i]) ? "run.row=RAIL-Primal" : NULL);
        assert_int_equal(s.shots, 16);
        assert_true(s.repeat_shots);
        assert_string_equal(s.setting, "x_tail");
        for (size_t k = 0; k < s.task_count; k++) {
            const char *name = options_list_item(suite_options(suite, "data"), "order", k);
            struct task_settings task = task_settings_of(suite, name);
            assert_string_equal(task.template, x_tail_prompt(name));
            assert_string_not_equal(name, "cifar100");
            assert_string_equal(options_text(suite_entry(suite, "tasks", name), "split"),
                                strcmp(name, "mnist") == 0 ? "torchvision" : "coop");
        }
    }
}

/* Row Park, which those of one row run by themselves, chooses routers as MA does; row Park-clip as this program does. */
TEST(parks_suites_select_as_published)
{
    static const struct {
        const char *suite, *order, *setting;
        double threshold;
        bool itself;
    } expected[] = {{"mtil", "I", "full_shot", 0.0655, true},
                    {"mtil_order2", "II", "full_shot", 0.0655, true},
                    {"table2", "I", "full_shot", 0.0655, false},
                    {"table3", "I", "full_shot", 0.0655, false},
                    {"mtil_few_shot", "I", "few_shot", 0.06, true},
                    {"few_shot_table", "I", "few_shot", 0.06, false},
                    {"xtail_table",
                     "aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397",
                     "x_tail", 0.06, false}};
    static const char *const rows[] = {"run.row=Park", "run.row=Park-clip"};
    for (size_t i = 0; i < 2 * sizeof expected / sizeof *expected; i++) {
        size_t of = i / 2;
        bool own = i % 2 == 1;
        struct suite *suite = load(expected[of].suite, own || !expected[of].itself ? rows[own] : NULL);
        assert_string_equal(options_text(suite_options(suite, "run"), "row"), rows[own] + 8);
        assert_string_equal(s.order, expected[of].order);
        assert_string_equal(s.setting, expected[of].setting);
        assert_int_equal(s.adapter.experts, 55);
        assert_string_equal(s.selector.kind->name, own ? "clip" : "alexnet");
        assert_int_equal(s.selector.decision, own ? DECIDE_PER_IMAGE : DECIDE_PER_BATCH);
        assert_true(s.selector.threshold == (own ? 0 : expected[of].threshold));
        assert_true((s.selector.alexnet == NULL) == own);
    }
}

/* A threshold in the unit of one kind's errors is no default of another. */
TEST(alexnets_threshold_is_its_default)
{
    must_read("selector: {kind: alexnet, alexnet: a.pth}\n", NULL);
    assert_true(s.selector.threshold == 0.0655);
    must_read("selector: {kind: alexnet, alexnet: a.pth}\n", "selector.kind=clip");
    assert_true(s.selector.threshold == 0);
    must_read("selector: {kind: alexnet, alexnet: a.pth}\n", "selector.threshold=0");
    assert_true(s.selector.threshold == 0); /* the quantile */
}

/* What the published few-shot runs use. */
TEST(few_shot_as_published)
{
    static const struct {
        const char *task;
        double rate;
    } expected[] = {{"aircraft", 8e-3},   {"caltech101", 5e-4},    {"cifar100", 2e-4}, {"dtd", 5e-3},
                    {"eurosat", 1e-3},    {"flowers", 1e-3},       {"food", 1e-2},     {"mnist", 1e-4},
                    {"oxford_pet", 1e-2}, {"stanford_cars", 1e-2}, {"sun397", 1e-2}};
    struct suite *suite = load("mtil_few_shot", NULL);
    assert_int_equal(s.shots, 5);
    assert_true(s.selector.rate == 0.003);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct task_settings task = task_settings_of(suite, expected[i].task);
        assert_true(task.rate == expected[i].rate);
        assert_true(task.augmentation.one_crop);
        assert_int_equal(task.iterations, 500);
    }
}

/* MA's class-incremental runs, and the baselines of ZSCL's public code beside them. */
TEST(class_incremental_as_published)
{
    static const struct {
        const char *suite, *order;
        size_t tasks, batch; /* batch: of MA */
    } expected[] = {{"cil_cifar100_10", "cifar100", 10, 128},         {"cil_cifar100_20", "cifar100", 20, 128},
                    {"cil_cifar100_50", "cifar100", 50, 64},          {"cil_tinyimagenet_5", "tiny_imagenet", 6, 64},
                    {"cil_tinyimagenet_10", "tiny_imagenet", 11, 64}, {"cil_tinyimagenet_20", "tiny_imagenet", 21, 64}};
    static const char *const rows[] = {"run.row=MA", "run.row=iCaRL"};
    for (size_t i = 0; i < 2 * sizeof expected / sizeof *expected; i++) {
        size_t of = i / 2;
        bool adapters = i % 2 == 0;
        struct suite *suite = load(expected[of].suite, rows[i % 2]);
        struct task_settings task = task_settings_of(suite, expected[of].order);
        assert_string_equal(s.order, expected[of].order);
        assert_string_equal(s.setting, "class_incremental");
        assert_int_equal(s.task_count, expected[of].tasks);
        assert_int_equal(task.batch, adapters ? expected[of].batch : 64);
        assert_string_equal(task.template, "a bad photo of a {}.");
        assert_string_equal(options_text(suite_entry(suite, "tasks", expected[of].order), "class_names"),
                            strcmp(expected[of].order, "cifar100") == 0 ? "original" : "spaced");
        assert_int_equal(task.epochs, 1);
        assert_int_equal(task.warmup, 30);
        assert_true(task.rate == (adapters ? 1e-3 : 7.1e-6));
        assert_true(task.smoothing == (adapters ? 0.0f : 0.2f));
        assert_int_equal(settings_seeds(suite), 3);
        if (adapters)
            assert_true(s.adapter.experts == 2 && s.adapter.top_k == 2);
        else
            assert_int_equal(options_integer(suite_options(suite, "method"), "exemplars"), 5000);
    }
}

static void keep_message(void *context, enum log_level level, const char *message)
{
    struct text *said = context;
    assert_int_equal(level, LOG_WARN);
    text_add(said, "%s\n", message);
}

/* In one line, for runs that train and whose iterations are known. */
TEST(warm_up_beyond_training_is_warned_about)
{
    static const struct {
        const char *override, *said, *more;
    } cases[] = {
        {"training.iterations=20", "100 iterations of warm-up are longer than the 20 of training (a and others)", NULL},
        {"training.warmup_epochs=501", NULL, NULL}, /* how many iterations they are is not known */
        {"tasks.b.warmup=1001", "1001 iterations of warm-up are longer than the 1000 of training (b)", NULL},
        {"training.iterations=100", NULL, NULL},
        {"training.epochs=1", NULL, NULL},
        {"training.epochs=4", "5 epochs of warm-up are longer than the 4 of training", "training.warmup_epochs=5"},
        {"method.name=zero_shot", NULL, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct text said = {0};
        struct log log = {.write = keep_message, .context = &said, .least = LOG_WARN};
        struct suite *suite = must_read("data: {order: [a, b]}\ntasks: {a: {reader: dtd}, b: {reader: dtd}}\n",
                                        cases[i].override, cases[i].more);
        assert_int_equal(settings_warn(&s, suite, &log), cases[i].said != NULL);
        if (cases[i].said != NULL && (said.data == NULL || strstr(said.data, cases[i].said) == NULL))
            fail_msg("%s: expected \"%s\", found %s", cases[i].override, cases[i].said, said.data);
        assert_true(said.data == NULL || strchr(said.data, '\n')[1] == 0);
        text_free(&said);
    }
}
