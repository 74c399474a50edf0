#include <stdio.h>
#include <string.h>

#include "harness/scenario/task_settings.h"
#include "models/optimizers/optimizer.h"
#include "results/store.h"
#include "tests/harness/suites.h"

TEST_GROUP(NULL, forget_suites)

/* --- Tasks --- */

#define TASKS                                                                                                          \
    "data: {order: [dtd, again, mnist], root: here}\n"                                                                 \
    "training: {iterations: 50, batch: 7, learning_rate: 0.25}\n"                                                      \
    "tasks:\n"                                                                                                         \
    "  again: {reader: dtd, root: there, iterations: 20, reference_iterations: yes}\n"                                 \
    "  mnist: {learning_rate: 0.5}\n"
#define EPOCHS                                                                                                         \
    "data: {order: [dtd, mnist]}\n"                                                                                    \
    "training: {epochs: 300, warmup_epochs: 30, batch: 128, warmup: 7}\n"                                              \
    "tasks: {mnist: {epochs: 0, iterations: 20, warmup_epochs: 0}}\n"
#define DECAYED "training: {momentum: 0.5, weight_decay: 0.1}\n"

/* A task inherits and overrides. The reference does one iteration more than its schedule has; 50,000 images in batches of 128 are 391
 * iterations, the last of 80 images. */
TEST(tasks_have_their_settings)
{
    static const struct {
        const char *yaml, *override, *task;
        size_t images; /* that epochs are counted of */
        const char *expected;
    } cases[] = {
        {"data: {root: here}\n", NULL, "dtd", 0, "dtd here 1000/1000 warmup 100 batch 64 rate 0.001 smoothing 0.2"},
        {TASKS, NULL, "dtd", 0, "dtd here 50/50 warmup 100 batch 7 rate 0.25 smoothing 0.2"},
        {TASKS, NULL, "again", 0, "dtd there 21/20 warmup 100 batch 7 rate 0.25 smoothing 0.2"},
        {TASKS, "tasks.mnist.warmup=3", "mnist", 0, "mnist here 50/50 warmup 3 batch 7 rate 0.5 smoothing 0.2"},
        {EPOCHS, NULL, "dtd", 50000, "dtd data/mini 117300/117300 warmup 11730 batch 128 rate 0.001 smoothing 0.2"},
        {EPOCHS, NULL, "dtd", 49920, "dtd data/mini 117000/117000 warmup 11700 batch 128 rate 0.001 smoothing 0.2"},
        {EPOCHS, NULL, "mnist", 50000, "mnist data/mini 20/20 warmup 7 batch 128 rate 0.001 smoothing 0.2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task_settings task = task_settings_of(must_read(cases[i].yaml, cases[i].override), cases[i].task);
        char found[200];
        if (cases[i].images > 0)
            task_settings_count(&task, cases[i].images);
        snprintf(found, sizeof found, "%s %s %zu/%zu warmup %zu batch %zu rate %g smoothing %g", task.reader, task.root,
                 task.iterations, task.schedule_end, task.warmup, task.batch, task.rate, (double)task.smoothing);
        assert_string_equal(found, cases[i].expected);
        assert_null(task.template);
    }
}

/* Its defaults are the first visit's, so the text has a value that is the section's and not the first visit's. */
TEST(a_second_visit_is_read_back)
{
    struct suite *suite = must_read("data: {order: [dtd, mnist, dtd@2]}\n"
                                    "training: {iterations: 7}\n"
                                    "tasks: {dtd: {iterations: 5}, dtd@2: {iterations: 7}}\n",
                                    NULL),
                 *again = must_read(suite_text(suite), NULL);
    assert_int_equal(task_settings_of(suite, "dtd@2").iterations, 7);
    assert_int_equal(task_settings_of(again, "dtd@2").iterations, 7);
    assert_string_equal(suite_text(again), suite_text(suite));
    assert_string_equal(suite_settings_hash(again), suite_settings_hash(suite));
}

/* Its absence is a value, too; of alternatives that would make a key read, all are named. */
TEST(what_decides_about_itself_is_read)
{
    struct text needed = {0};
    assert_true(
        suite_reads(must_read("data: {order: [dtd, mnist]}\n", "data.shared_classes=no"), "data.shared_classes", NULL));
    assert_false(suite_reads(must_read("data: {order: [dtd, mnist]}\n", "data.short_classes=repeat"),
                             "data.short_classes", &needed));
    assert_string_equal(needed.data, "data.shots!=0 or data.task_shots=*");
    text_free(&needed);
}

/* A task may have an optimizer of its own, and the momentum of all of them. */
TEST(tasks_choose_their_optimizer)
{
    static const struct {
        const char *yaml, *override, *task, *expected;
    } cases[] = {
        {DECAYED, "tasks.dtd.optimizer=sgd", "dtd", "sgd decay 0.1 momentum 0.5 betas 0 0 epsilon 0"},
        {DECAYED, "tasks.dtd.optimizer=sgd", "mnist", "adamw decay 0.1 momentum 0 betas 0.9 0.999 epsilon 1e-08"},
        {"training: {optimizer: sgd}\n", NULL, "mnist", "sgd decay 0 momentum 0.9 betas 0 0 epsilon 0"},
        {"training: {optimizer: lamb}\n", NULL, "dtd", "lamb decay 0 momentum 0 betas 0.9 0.999 epsilon 1e-06"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct suite *suite = must_read(cases[i].yaml, cases[i].override);
        struct update_rule rule = task_settings_of(suite, cases[i].task).rule;
        char found[100];
        snprintf(found, sizeof found, "%s decay %g momentum %g betas %g %g epsilon %g", rule.optimizer->name,
                 rule.weight_decay, rule.momentum, rule.beta1, rule.beta2, rule.epsilon);
        assert_string_equal(found, cases[i].expected);
    }
}

TEST(seeds_are_numbers)
{
    const struct suite *suite = must_read("run: {seeds: [7, 0]}\n", NULL);
    assert_int_equal(settings_seeds(suite), 2);
    assert_true(settings_seed(suite, 0) == 7 && settings_seed(suite, 1) == 0);
}

/* --- Ranges --- */

static status try_value(const char *key, double value)
{
    char override[200];
    struct suite *suite;
    snprintf(override, sizeof override, "%s=%.17g", key, value);
    status result = suites_try(&suite, "data: {order: [mnist]}\n", (const char *const[]){override, NULL});
    suite_destroy(suite);
    return result;
}

static void expect_range(const char *key, const struct option *o)
{
    const double beyond[] = {o->minimum - 1, o->maximum + (o->type == OPTION_INTEGER ? 1 : 0.5), o->maximum * 2 + 1};
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        if (try_value(key, beyond[i]) == OK)
            fail_msg("%s accepts %g; its range is %g to %g", key, beyond[i], o->minimum, o->maximum);
        if (strstr(error.message, o->name) == NULL)
            fail_msg("%s=%g is refused without its name: %s", key, beyond[i], error.message);
    }
}

/* Of keys that are inherited or come with a choice, too. */
TEST(every_range_is_kept)
{
    size_t checked = 0;
    const struct suite *suite = must_read("data: {order: [mnist]}\n", NULL);
    for (const struct suite_section *section = settings_sections; section->name != NULL; section++) {
        bool task = section->each_of != NULL;
        const struct option *table =
            options_table(task ? suite_entry(suite, section->name, "mnist") : suite_options(suite, section->name));
        for (const struct option *o = table; o->name != NULL; o++) {
            char key[128];
            snprintf(key, sizeof key, "%s%s.%s", section->name, task ? ".mnist" : "", o->name);
            if (options_find(table, o->name) != o)
                fail_msg("%s is declared twice", key);
            if ((o->type != OPTION_INTEGER && o->type != OPTION_REAL) || (o->minimum == 0 && o->maximum == 0))
                continue;
            expect_range(key, o);
            checked++;
        }
    }
    assert_true(checked > 70);
}

TEST(bounds_are_inside)
{
    assert_int_equal(try_value("adapter.freeze_top_k", 0), OK);
    assert_int_equal(try_value("adapter.experts", 1024), OK);
    assert_int_equal(try_value("adapter.experts", 2), OK);
    assert_int_equal(try_value("training.warmup", 1e9), OK);
    assert_int_equal(try_value("tasks.mnist.label_smoothing", 1), OK);
    assert_int_equal(try_value("selector.quantile", 0), OK);
}

#define CLASSIFIER(method) "head: {name: linear}\ndata: {order: [dtd]}\nmodel: {weights: scratch}\nmethod: " method "\n"

/* --- What a suite comes to --- */

#define X_TAIL                                                                                                         \
    "order=aircraft, caltech101, dtd, eurosat, flowers, food, mnist, oxford_pet, stanford_cars, sun397; "              \
    "setting=x_tail; task_count=10; "
#define RAIL                                                                                                           \
    X_TAIL "data.shots=16; data.short_classes=repeat; tasks.eurosat.template=a photo of a {} satellite location.; "    \
           "tasks.mnist.template=a photo of a number: \"{}\".; tasks.dtd.template=a photo of a {}.; "                  \
           "tasks.food.template=a photo of a {}.; tasks.mnist.split=torchvision; tasks.dtd.split=coop; "               \
           "tasks.eurosat.split=coop"
/* Park's system chooses routers as MA's does, or as this program. */
#define PARK "run.row=Park; adapter.experts=55; selector=alexnet; selector.decision=per_batch; threshold="
#define PARK_CLIP                                                                                                      \
    "run.row=Park-clip; adapter.experts=55; selector=clip; selector.decision=per_image; threshold=0; alexnet=none; "
/* MA's class-incremental runs, and a baseline of ZSCL's public code beside them. */
#define MA                                                                                                             \
    "setting=class_incremental; training.epochs=1; training.warmup=30; run.seeds=1, 2, 3; "                            \
    "training.learning_rate=1e-3; training.label_smoothing=0; adapter.experts=2; adapter.top_k=2; training.batch="
#define ICARL                                                                                                          \
    "setting=class_incremental; training.epochs=1; training.warmup=30; run.seeds=1, 2, 3; "                            \
    "training.learning_rate=7.1e-6; training.label_smoothing=0.2; method.exemplars=5000; training.batch=64; "
#define CIFAR "order=cifar100; tasks.cifar100.template=a bad photo of a {}.; tasks.cifar100.class_names=original; "
#define TINY                                                                                                           \
    "order=tiny_imagenet; tasks.tiny_imagenet.template=a bad photo of a {}.; tasks.tiny_imagenet.class_names=spaced; "

#define ROWS                                                                                                           \
    "training: {iterations: 7, learning_rate: 0.5}\n"                                                                  \
    "rows:\n"                                                                                                          \
    "  plain: {merge.policy: none}\n"                                                                                  \
    "  LwF-VR:\n"                                                                                                      \
    "    method.name: lwf_vr\n"                                                                                        \
    "    training.learning_rate: 0.25\n"                                                                               \
    "    tasks.dtd.learning_rate: 0.125\n"                                                                             \
    "    data.order: [dtd, mnist]\n"

/* YAML, or the name of a suite that ships. */
static const struct {
    const char *suite, *overrides[5], *values;
} suites[] = {
    /* the defaults are those of the published system */
    {"data: {}\n",
     {0},
     "order=I; setting=full_shot; task_count=11; method=moe_adapters; one_moment=0; experts=22; top_k=2; "
     "bottleneck=64; "
     "routers=11; scale=0.1; dropout=0.1; noise_epsilon=0.01; adapter.expert_input=residual; freeze_top_k=2; "
     "policy=most_used; every=100; merge.moments=keep; selector=clip; selector.decision=per_image; decision_batch=128; "
     "threshold=0; quantile=0.99; iterations=300; code=100; l2=0.0001; run.checkpoints=last; run.seeds=1"},
    {"training: {optimizer: sgd}\n", {0}, "one_moment=1"},
    {"training: {optimizer: lamb}\n", {0}, "one_moment=0"},
    {"data: {order: [mnist, dtd]}\n", {"tasks.dtd.optimizer=sgd"}, "one_moment=0"},
    {"data: {order: I}\n", {0}, "order=I; task_count=11"},
    {"data: {order: I}\n",
     {"data.order=II"},
     "order=II; data.order=stanford_cars, food, mnist, oxford_pet, flowers, sun397, aircraft, caltech101, dtd, "
     "eurosat, cifar100"},
    {"data: {order: [dtd, mnist]}\ntasks: {dtd: {warmup: 1}}\n", {0}, "order=dtd, mnist"},
    {"data: {order: [dtd, mnist], order_name: mine}\n", {0}, "order=mine"},
    /* the setting follows from shots and label space */
    {"data: {order: [dtd]}\n", {0}, "setting=full_shot; head=text"},
    {"data: {shots: 5, setting: few_shot}\n", {0}, "setting=few_shot; data.shots=5"},
    {"data: {order: [dtd, mnist], task_shots: [0, 0]}\n", {0}, "setting=full_shot"},
    {"data: {shots: 16}\nevaluation: {label_space: all}\n", {0}, "setting=x_tail"},
    {"data: {shots: 16}\nevaluation: {label_space: seen}\n", {0}, "setting=class_incremental"},
    /* one dataset is cut into tasks */
    {"data: {order: [dtd], split_by: labels, parts: 7, similarity: apart}\n",
     {0},
     "order=dtd; task_count=7; routers=7"},
    {"data: {order: [tiny_imagenet], split_by: order, class_order: tinyimagenet, first: 100, parts: 5}\n",
     {0},
     "task_count=6; data.class_order=tinyimagenet"},
    {"data: {order: [dtd], split_by: order}\n", {0}, "task_count=10"},
    {"adapter: {routers: one}\nselector: {kind: none}\n", {0}, "task_count=11; routers=1; selector=none"},
    /* a value for all tasks or one */
    {"data: {order: [dtd, mnist], template: \"a {}\", split: coop}\n"
     "tasks: {mnist: {template: \"the number {}\", split: torchvision}}\n",
     {0},
     "tasks.dtd.template=a {}; tasks.mnist.template=the number {}; tasks.dtd.split=coop; "
     "tasks.mnist.split=torchvision"},
    {"training: {randaugment: 2, randaugment_magnitude: 15}\n",
     {"tasks.dtd.randaugment=0"},
     "tasks.dtd.randaugment=0; tasks.mnist.randaugment=2"},
    {"data: {order: [mnist, dtd]}\nmethod: {name: continual_ft}\n",
     {"training.randaugment=2", "training.random_erasing=0.1", "training.mixup=1", "training.flip=0.5"},
     "tasks.dtd.mixup=1"},
    {"data: {order: [mnist, dtd]}\nmethod: {name: replay}\n",
     {"tasks.dtd.cutmix=1", "training.autoaugment=cifar10"},
     "tasks.mnist.cutmix=0"},
    /* a later place replaces iterations by epochs, and back */
    {"training: {iterations: 5}\n", {"training.epochs=2"}, "training.iterations=1000; training.epochs=2"},
    {"training: {epochs: 2}\n", {"training.iterations=5"}, "training.iterations=5; training.epochs=0"},
    {"training: {iterations: 5}\n", {"training.epochs=0"}, "training.iterations=5; training.epochs=0"},
    {"training: {iterations: 5}\nrows: {Long: {training.epochs: 3}}\n",
     {"run.row=Long"},
     "training.iterations=1000; training.epochs=3"},
    {"training: {iterations: 5}\nrows: {Long: {training.epochs: 3}}\n",
     {"run.row=Long", "training.iterations=7"},
     "training.iterations=7; training.epochs=0"},
    /* a row stands between file and overrides, which win in their order */
    {ROWS, {"run.row=LwF-VR"}, "run.row=LwF-VR; method=lwf_vr; data.order=dtd, mnist; tasks.dtd.learning_rate=0.125"},
    {ROWS,
     {"training.learning_rate=1", "run.row=LwF-VR", "training.iterations=8", "training.iterations=9"},
     "training.learning_rate=1; training.iterations=9"},
    {ROWS,
     {"rows.plain.training.batch=1", "run.row=LwF-VR", "rows.LwF-VR.tasks.dtd.learning_rate=1",
      "rows.LwF-VR.training.batch=2"},
     "tasks.dtd.learning_rate=1; training.learning_rate=0.25; training.batch=2"},
    {"data: {order: [dtd, mnist]}\n",
     {"tasks.second.batch=5", "data.order=second,dtd", "tasks.second.reader=mnist", "run.seeds=[4, 5,6]"},
     "tasks.second.batch=5; order=second, dtd; run.seeds=4, 5, 6"},
    /* groups follow from methods: of adapters 1, of the image tower 2 and the text tower 4, of the head 8 */
    {"method: {name: finetune, train: adapters}\n", {0}, "groups=1"},
    {"method: {name: finetune}\n", {0}, "groups=6"},
    {CLASSIFIER("{name: supervised}"), {0}, "groups=10"},
    /* a tower from scratch has sizes */
    {CLASSIFIER("{name: supervised}"), {"model.width=128"}, "width=128; heads=2; hidden=512"},
    {CLASSIFIER("{name: supervised}"), {"model.width=70", "model.heads=7"}, "heads=7"},
    {CLASSIFIER("{name: supervised}"), {"model.weights=clip.safetensors"}, "width=0"},
    /* mixtures in place of MLPs: a paper's values are defaults of other sections, and a suite's own words win */
    {CLASSIFIER("{name: supervised, ffn: ewa}"),
     {0},
     "head=linear; policy=ewa; groups=11; adapter.kind=ffn; adapter.router=random_uniform; experts=4; "
     "adapter.blocks=every_2; merge.rate=0.3"},
    {CLASSIFIER("{name: supervised, ffn: rmoe}"),
     {"adapter.experts=16"},
     "experts=16; top_k=1; adapter.balance_loss=rmoe; adapter.blocks=by_score_3; init_noise=0.01; score_noise=0.001; "
     "adapter.noise_unit=deviation"},
    {CLASSIFIER("{name: supervised, ffn: widenet}"),
     {0},
     "model.share_groups=1; banks=1; decisions=0; head.pool=mean_patches"},
    {CLASSIFIER("{name: supervised, ffn: rmoe}"),
     {"adapter.balance_loss=none", "adapter.balance_weight=0.01"},
     "policy=none"},
    /* a threshold in the unit of one kind's errors is no default of another; 0 is the quantile */
    {"selector: {kind: alexnet, alexnet: a.pth}\n", {0}, "threshold=0.0655; alexnet=a.pth"},
    {"selector: {kind: alexnet, alexnet: a.pth}\n", {"selector.kind=clip"}, "threshold=0"},
    {"selector: {kind: alexnet, alexnet: a.pth}\n", {"selector.threshold=0"}, "threshold=0"},
    /* a suite that uses another one has the other's values and rows but for its own */
    {"use: mini_cil\ndata: {parts: 2}\ntraining: {batch: 4}\n",
     {0},
     "task_count=2; evaluation.label_space=seen; training.batch=4; training.epochs=3"},
    {"use: mini_cil_table\ntraining: {batch: 4}\n",
     {"training.batch=5", "run.row=LwF"},
     "method=lwf; training.batch=5"},
    {"use: mini_cil\ntraining: {iterations: 3}\n", {0}, "training.epochs=0; training.iterations=3"},
    {"use: mini_cil_table\nrows: {Mine: {method.name: ewc}}\n", {"run.row=Mine"}, "method=ewc"},
    /* suites that ship are what their names say, with the values of the papers */
    {"mini", {0}, "order=I; setting=full_shot; task_count=11; adapter.experts=22"},
    {"mini_continual_ft", {0}, "order=I; setting=full_shot; task_count=11; method=continual_ft"},
    {"mini_finetune", {0}, "order=I; setting=full_shot; task_count=11; method=finetune"},
    {"mini_few_shot", {0}, "order=I; setting=few_shot; task_count=11; adapter.experts=22"},
    {"mini_order2", {0}, "order=II; setting=full_shot; task_count=11; adapter.experts=22"},
    {"mini_labels", {"run.row=together"}, "order=cifar100; setting=full_shot; task_count=5; adapter.experts=22"},
    {"cifar100_labels", {0}, "order=cifar100; setting=full_shot; task_count=10; adapter.experts=55"},
    {"mini_cil", {0}, "order=cifar100; setting=class_incremental; task_count=5; adapter.experts=2"},
    {"xtail", {0}, RAIL "; adapter.experts=55"},
    {"mini_xtail", {0}, RAIL "; adapter.experts=22"},
    {"xtail_table", {"run.row=RAIL-Primal"}, RAIL},
    {"mini_xtail_table", {"run.row=RAIL-Primal"}, RAIL},
    {"mtil", {0}, PARK "0.0655; order=I; setting=full_shot"},
    {"mtil", {"run.row=Park-clip"}, PARK_CLIP "order=I; setting=full_shot"},
    {"mtil_order2", {0}, PARK "0.0655; order=II; setting=full_shot"},
    {"mtil_order2", {"run.row=Park-clip"}, PARK_CLIP "order=II; setting=full_shot"},
    {"table2", {"run.row=Park"}, PARK "0.0655; order=I; setting=full_shot"},
    {"table2", {"run.row=Park-clip"}, PARK_CLIP "order=I; setting=full_shot"},
    {"table3", {"run.row=Park"}, PARK "0.0655; order=I; setting=full_shot"},
    {"table3", {"run.row=Park-clip"}, PARK_CLIP "order=I; setting=full_shot"},
    {"mtil_few_shot",
     {0},
     PARK
     "0.06; order=I; setting=few_shot; data.shots=5; selector.learning_rate=0.003; training.crops=once; "
     "training.iterations=500; tasks.aircraft.learning_rate=8e-3; tasks.caltech101.learning_rate=5e-4; "
     "tasks.cifar100.learning_rate=2e-4; tasks.dtd.learning_rate=5e-3; tasks.eurosat.learning_rate=1e-3; "
     "tasks.flowers.learning_rate=1e-3; tasks.food.learning_rate=1e-2; tasks.mnist.learning_rate=1e-4; "
     "tasks.oxford_pet.learning_rate=1e-2; tasks.stanford_cars.learning_rate=1e-2; tasks.sun397.learning_rate=1e-2"},
    {"mtil_few_shot", {"run.row=Park-clip"}, PARK_CLIP "order=I; setting=few_shot"},
    {"few_shot_table", {"run.row=Park"}, PARK "0.06; order=I; setting=few_shot"},
    {"few_shot_table", {"run.row=Park-clip"}, PARK_CLIP "order=I; setting=few_shot"},
    {"xtail_table", {"run.row=Park"}, X_TAIL PARK "0.06"},
    {"xtail_table", {"run.row=Park-clip"}, X_TAIL PARK_CLIP "task_count=10"},
    {"cil_cifar100_10", {"run.row=MA"}, CIFAR MA "128; task_count=10"},
    {"cil_cifar100_20", {"run.row=MA"}, CIFAR MA "128; task_count=20"},
    {"cil_cifar100_50", {"run.row=MA"}, CIFAR MA "64; task_count=50"},
    {"cil_tinyimagenet_5", {"run.row=MA"}, TINY MA "64; task_count=6"},
    {"cil_tinyimagenet_10", {"run.row=MA"}, TINY MA "64; task_count=11"},
    {"cil_tinyimagenet_20", {"run.row=MA"}, TINY MA "64; task_count=21"},
    {"cil_cifar100_10", {"run.row=iCaRL"}, CIFAR ICARL "task_count=10"},
    {"cil_cifar100_20", {"run.row=iCaRL"}, CIFAR ICARL "task_count=20"},
    {"cil_cifar100_50", {"run.row=iCaRL"}, CIFAR ICARL "task_count=50"},
    {"cil_tinyimagenet_5", {"run.row=iCaRL"}, TINY ICARL "task_count=6"},
    {"cil_tinyimagenet_10", {"run.row=iCaRL"}, TINY ICARL "task_count=11"},
    {"cil_tinyimagenet_20", {"run.row=iCaRL"}, TINY ICARL "task_count=21"},
};

TEST(suites_come_to_their_values)
{
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        bool ships = strchr(suites[i].suite, '\n') == NULL;
        struct suite *suite = ships ? suites_load(suites[i].suite, suites[i].overrides[0])
                                    : suites_read(suites[i].suite, suites[i].overrides);
        expect_values(suite, suites[i].values);
        expect_reread(suite);
    }
}

/* --- What makes a run another one --- */

static bool same_hash(const struct suite *a, const struct suite *b)
{
    return strcmp(suite_settings_hash(a), suite_settings_hash(b)) == 0;
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

/* Of each of the overrides, which blanks separate. */
static void expect_use(const char *text, const char *overrides, bool used)
{
    char key[64];
    for (int size; sscanf(overrides, "%63s%n", key, &size) == 1; overrides += size) {
        const char *value = strchr(key, '='), *name = memrchr(key, '.', (size_t)(value - key));
        const struct suite *plain = must_read(text, NULL), *changed = must_read(text, key);
        char line[64];
        snprintf(line, sizeof line, " %.*s: %s\n", (int)(value - name - 1), name + 1, value + 1);
        if (same_hash(plain, changed) == used || has_row(changed, key) != used ||
            (strstr(suite_text(changed), line) != NULL) != used)
            fail_msg("%s%s: expected it %s", text, key, used ? "read" : "left out");
        expect_reread(changed);
    }
}

/* Keys that the method, the policy, the schedule or the selector does not read say nothing about its runs: they are not in the hash,
 * the text and the rows, so that two runs that differ in them are one. */
TEST(keys_belong_to_choices)
{
    static const struct {
        const char *text, *read, *left_out;
    } cases[] = {
        {"method: {name: moe_adapters}\n", "adapter.experts=7 merge.every=7 combine.name=ties selector.code=7", ""},
        {"method: {name: zero_shot}\n", "tasks.dtd.template=paper",
         "adapter.experts=7 merge.every=7 training.learning_rate=0.1 tasks.dtd.batch=7"},
        {"method: {name: continual_ft}\n", "training.batch=7", "combine.name=ties selector.code=7"},
        {"method: {name: finetune}\n", "", "adapter.experts=7"},
        {"method: {name: finetune, train: adapters}\n", "adapter.experts=7", "merge.every=7"},
        {"method: {name: rail_primal}\n", "", "training.batch=7"},
        {"method: {name: lwf}\n", "tasks.dtd.batch=7", ""},
        {"merge: {policy: none}\n", "merge.policy=random",
         "merge.every=7 merge.schedule=plateau merge.moments=reset combine.name=fisher"},
        {"merge: {policy: ewa}\n", "merge.until=0.5", "merge.every=7"},
        {"merge: {policy: most_used}\n", "merge.every=7", ""},
        {"merge: {policy: most_used, schedule: end_of_task}\n", "", "merge.every=7"},
        {"merge: {policy: most_used, schedule: plateau}\n", "merge.every=7 merge.least_fall=0.5", ""},
        {"adapter: {freeze: none}\n", "", "adapter.freeze_top_k=1"},
        {"adapter: {freeze: random}\n", "adapter.freeze_top_k=1", ""},
        {"selector: {kind: clip}\n", "selector.code=7 selector.quantile=0.5",
         "selector.shrinkage=0.5 selector.decision_batch=7"},
        {"selector: {kind: clip, decision: per_batch}\n", "selector.decision_batch=7", ""},
        {"selector: {kind: clip, threshold: 0.1}\n", "", "selector.quantile=0.5"},
        {"selector: {kind: gaussian}\n", "selector.shrinkage=0.5", "selector.code=7"},
        {"selector: {kind: oracle}\n", "", "selector.decision=per_batch"},
        {"data: {shots: 0}\n", "", "data.short_classes=repeat"},
        {"data: {shots: 5}\n", "data.short_classes=repeat", ""},
        {"data: {order: [dtd], task_shots: [5]}\n", "data.short_classes=repeat", ""},
        {"merge: {policy: most_used}\n", "", "merge.least_fall=0.5"},
        {"merge: {policy: ewa}\n", "", "merge.schedule=once merge.moments=reset combine.name=ties"},
        {"method: {name: zero_shot}\n", "",
         "training.mixup=0.5 training.randaugment=2 training.iterations=7 tasks.dtd.flip=0.5"},
        {"method: {name: rail_primal}\n", "", "training.randaugment=2"},
        {"data: {order: [dtd]}\n", "data.template=photo tasks.dtd.template=photo", ""},
        {CLASSIFIER("{name: supervised}"), "", "data.template=photo tasks.dtd.template=photo"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_use(cases[i].text, cases[i].read, true);
        expect_use(cases[i].text, cases[i].left_out, false);
    }
    const struct suite *plain = must_read(CLASSIFIER("{name: supervised}"), NULL),
                       *dense = must_read(
                           CLASSIFIER("{name: supervised, ffn: dense, dropout: 0}") "adapter: {experts: 7}\n", NULL);
    assert_true(same_hash(plain, dense)); /* as before there were mixtures */
    assert_null(strstr(suite_text(dense), "adapter:"));
    assert_null(strstr(suite_text(dense), "merge:"));
    assert_null(strstr(suite_text(must_read("head: {name: text}\n", NULL)), "head:"));
}

/* Of each of the overrides, which blanks separate. */
static void expect_in_hash(const char *overrides, bool expected)
{
    char override[64];
    for (int size; sscanf(overrides, "%63s%n", override, &size) == 1; overrides += size)
        if (same_hash(must_read("data: {order: [dtd]}\n", NULL), must_read("data: {order: [dtd]}\n", override)) ==
            expected)
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
                   "training.optimizer=adamw training.momentum=0.90 data.order_name=mine "
                   "training.randaugment=0 training.randaugment_magnitude=9 training.random_erasing=0 "
                   "training.random_erasing_fill=mean training.mixup=0 training.cutmix=0 "
                   "training.crop_scale=9e-1 training.flip=0.0 training.autoaugment=none "
                   "training.warmup_epochs=0 adapter.shared_expert=no adapter.init_noise=0.0",
                   false);
    expect_in_hash("model.activation=gelu run.precision=bf16 data.split=coop data.on_missing=skip "
                   "data.shots=16 evaluation.label_space=all evaluation.label_space=seen training.epochs=1 "
                   "training.optimizer=sgd tasks.dtd.optimizer=lamb tasks.dtd.epochs=1 training.batch=32 "
                   "tasks.dtd.warmup=5 selector.decision=per_batch merge.moments=reset "
                   "training.randaugment=2 training.random_erasing=0.25 training.mixup=0.8 training.cutmix=1 "
                   "tasks.dtd.mixup=0.8 training.crop_scale=0.05 training.flip=0.5 "
                   "training.autoaugment=cifar10 training.warmup_epochs=1",
                   true);
    /* A task's value that is not that of all tasks counts, whatever it is. */
    assert_false(same_hash(must_read("data: {order: [dtd]}\ntraining: {epochs: 2}\n", NULL),
                           must_read("data: {order: [dtd]}\ntraining: {epochs: 2}\n", "tasks.dtd.epochs=0")));
    assert_true(suite_key_incidental(settings_sections, "training.epochs", "0"));
    assert_false(suite_key_incidental(settings_sections, "tasks.dtd.epochs", "0"));
    assert_true(suite_key_incidental(settings_sections, "tasks.dtd.on_unreadable", "skip"));
    assert_true(suite_key_incidental(settings_sections, "tasks.dtd.path", "a"));
    assert_true(suite_key_incidental(settings_sections, "merge.files", "a"));
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
    assert_between(rows.names.count, 0, MOST);
    for (size_t i = 0; i < rows.names.count; i++) {
        char row[128];
        snprintf(row, sizeof row, "%s=%s", rows.key, rows.names.items[i]);
        const struct suite *suite = suites_load(name, row);
        snprintf(runs[i], sizeof runs[i], "%s %s", suite_settings_hash(suite), value_of(suite, "model.weights"));
        for (size_t k = 0; k < i; k++)
            if (strcmp(runs[k], runs[i]) == 0)
                fail_msg("%s: %s is the same run as %s", name, rows.names.items[i], rows.names.items[k]);
    }
    suite_rows_free(&rows);
    return any;
}

/* Every suite that ships can be read. Those whose rows are compared with published ones of MA's or ZSCL's code name the table of its
 * faults. */
TEST(shipped_suites)
{
    size_t found = 0;
    for (size_t i = 0; i < suite_library_size(); i++) {
        struct shipped_suite shipped = suite_library_get(i);
        bool rows = has_rows(shipped.name);
        if (*shipped.table == 0)
            fail_msg("%s: expected a second line \"# Table: …\"", shipped.name);
        assert_true(*shipped.summary != 0 && shipped.text[shipped.size] == 0);
        bool beside = rows && strncmp(shipped.name, "mini_", 5) != 0 &&
                      (strncmp(shipped.table, "MA's", 4) == 0 || strncmp(shipped.table, "RAIL's", 6) == 0 ||
                       strncmp(shipped.table, "Park", 4) == 0);
        if (!rows)
            suites_load(shipped.name, NULL);
        found += beside;
        if ((strstr(shipped.text, "# Faults of the public code") != NULL) != beside)
            fail_msg("%s: expected %s line about faults of the public code", shipped.name, beside ? "a" : "no");
    }
    assert_int_equal(found, 11);
}
