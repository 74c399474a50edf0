/* One dataset as tasks: the classes that each gets, what is said and stored of it, and a run on it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/scenario/label_split.h"
#include "tests/harness/whole_run.h"

enum { COLORS = 6 };

#define CUT "data.order=third", "tasks.third.classes=6", "data.split_by=labels"

/* Every class is in one task, under its name and with its images. */
RUN_TEST(tasks_share_the_classes, CUT, "data.parts=4", "data.similarity=together", NULL)
{
    const struct run *e = run->experiment;
    size_t seen[COLORS] = {0}, training = 0;
    assert_int_equal(e->data.task_count, 4);
    assert_int_equal(e->model.settings.adapter.tasks, 4);
    assert_string_equal(e->data.tasks[0].settings.name, "third-1");
    assert_string_equal(e->data.tasks[3].settings.name, "third-4");
    for (size_t k = 0; k < 4; k++) {
        const struct dataset *part = e->data.tasks[k].dataset;
        assert_in_range(dataset_classes(part), 1, 2);
        training += dataset_size(part, SPLIT_TRAIN);
        for (size_t c = 0; c < dataset_classes(part); c++)
            for (size_t w = 0; w < COLORS; w++)
                if (strcmp(dataset_class_name(part, c), dataset_class_name(e->data.whole.dataset, w)) == 0) {
                    seen[w]++;
                    assert_int_equal(e->data.cut->task_of[w], k);
                }
    }
    for (size_t w = 0; w < COLORS; w++)
        assert_int_equal(seen[w], 1);
    assert_int_equal(training, dataset_size(e->data.whole.dataset, SPLIT_TRAIN));
}

static double within(struct small_run *run, uint64_t seed, const char *similarity, uint32_t task_of[COLORS])
{
    small_run_reopen(run, seed, WORDS(CUT, "data.parts=3", similarity));
    const struct label_split *cut = run->experiment->data.cut;
    double sum = 0;
    memcpy(task_of, cut->task_of, COLORS * sizeof *task_of);
    for (size_t k = 0; k < 3; k++)
        sum += cut->cosines[k * 3 + k] / 3;
    assert_true(fabs(sum - cut->within) < 1e-12); /* all tasks have one pair */
    assert_true(cut->within > -1 && cut->within < 1);
    return cut->within;
}

RUN_TEST(similarity_is_what_was_asked_for, NULL)
{
    uint32_t first[COLORS], again[COLORS], other[COLORS];
    double together = within(run, 1, "data.similarity=together", first),
           by_chance = within(run, 1, "data.similarity=random", other),
           apart = within(run, 1, "data.similarity=apart", other);
    assert_true(together >= by_chance && by_chance >= apart && together > apart);
    /* a run's seed does not change the data */
    assert_true(within(run, 2, "data.similarity=together", again) == together);
    assert_memory_equal(first, again, sizeof first);
}

RUN_TEST(what_is_printed, CUT, "data.parts=6", "data.similarity=apart", NULL)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    label_split_print(run->experiment->data.cut, run->experiment->data.whole.dataset, out);
    fclose(out);
    assert_non_null(strstr(text, "# task 1 of 6: red\n"));
    assert_non_null(strstr(text, "# task 6 of 6: white\n"));
    assert_non_null(strstr(text, "within tasks"));
    assert_true(isnan(run->experiment->data.cut->within)); /* no pair */
    free(text);
}

static status add_class(struct store *store, const char *name)
{
    return store_add(store, 1, "task_classes",
                     NAMED({"task", value_integer(0)}, {"class", value_integer(0)}, {"name", value_text(name)}),
                     &error);
}

RUN_TEST(a_run_over_the_parts, CUT, "data.parts=3", "data.similarity=together", NULL)
{
    struct store *store;
    must(whole_run(run, "a.db", NULL));
    expect_text(run, "a.db", "SELECT group_concat(name, ' ') FROM tasks", "third-1 third-2 third-3");
    expect_text(run, "a.db", "SELECT group_concat(name, ' ') FROM (SELECT name FROM task_classes ORDER BY name)",
                "black blue green red white yellow");
    expect_text(run, "a.db", "SELECT count(*) || ' ' || count(cosine) FROM task_similarities", "6 6");
    expect_text(run, "a.db",
                "SELECT group_concat(count) FROM (SELECT count(*) AS count FROM task_classes GROUP BY task)", "2,2,2");
    expect_number(run, "a.db", "SELECT count(*) FROM evaluations", 12);
    must(store_open(&store, small_run_file(run, "a.db"), STORE_WRITE, &error));
    must(add_class(store, dataset_class_name(run->experiment->data.tasks[0].dataset, 0)));
    must_refuse(add_class(store, "purple"), ERROR_ARGUMENT, "task 0", "\"purple\"", "cut in another way");
    store_close(store);
}
