/* One dataset as tasks: the classes that each gets, what is said and stored of it, and a run on it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/sequence.h"
#include "harness/scenario/label_split.h"
#include "results/query.h"
#include "tests/harness/small_run.h"

enum { COLORS = 6 };

#define CUT "data.order=third", "tasks.third.classes=6", "data.split_by=labels"

static void open_cut(struct small_run *run, uint64_t seed, const char *parts, const char *similarity)
{
    char override[64];
    snprintf(override, sizeof override, "data.similarity=%s", similarity);
    small_run_open(run, seed, (const char *const[]){CUT, parts, override, NULL});
}

/* Every class is in one task, under its name and with its images. */
TEST(tasks_share_the_classes)
{
    struct small_run run;
    open_cut(&run, 1, "data.parts=4", "together");
    const struct run *e = run.experiment;
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
    small_run_close(&run);
}

static double within(uint64_t seed, const char *similarity, uint32_t task_of[COLORS])
{
    struct small_run run;
    open_cut(&run, seed, "data.parts=3", similarity);
    double measured = run.experiment->data.cut->within, sum = 0;
    memcpy(task_of, run.experiment->data.cut->task_of, COLORS * sizeof *task_of);
    for (size_t k = 0; k < 3; k++)
        sum += run.experiment->data.cut->cosines[k * 3 + k] / 3;
    assert_true(fabs(sum - measured) < 1e-12); /* all tasks have one pair */
    assert_true(measured > -1 && measured < 1);
    small_run_close(&run);
    return measured;
}

TEST(similarity_is_what_was_asked_for)
{
    uint32_t first[COLORS], again[COLORS], other[COLORS];
    double together = within(1, "together", first), by_chance = within(1, "random", other),
           apart = within(1, "apart", other);
    assert_true(together >= by_chance && by_chance >= apart && together > apart);
    assert_true(within(2, "together", again) == together); /* a run's seed does not change the data */
    assert_memory_equal(first, again, sizeof first);
}

TEST(what_is_printed)
{
    struct small_run run;
    char *text = NULL;
    size_t size;
    open_cut(&run, 1, "data.parts=6", "apart");
    FILE *out = open_memstream(&text, &size);
    label_split_print(run.experiment->data.cut, run.experiment->data.whole.dataset, out);
    fclose(out);
    assert_non_null(strstr(text, "# task 1 of 6: red\n"));
    assert_non_null(strstr(text, "# task 6 of 6: white\n"));
    assert_non_null(strstr(text, "within tasks"));
    assert_true(isnan(run.experiment->data.cut->within)); /* no pair */
    free(text);
    small_run_close(&run);
}

/* A run over the parts, its answer to a question in text. */
static void expect_stored(struct store *store, const char *sql, const char *expected)
{
    struct table table = {0};
    must(query_sql(store, sql, &table, &error));
    assert_string_equal(table.cell[0].text, expected);
    table_free(&table);
}

TEST(a_run_over_the_parts)
{
    struct small_run run;
    struct store *store;
    struct table table = {0};
    open_cut(&run, 1, "data.parts=3", "together");
    must(store_open(&store, small_run_file(&run, "a.db"), STORE_WRITE, &error));
    struct sequence sequence = {.run = run.experiment, .store = store};
    must(sequence_run(&sequence, &error));
    expect_stored(store, "SELECT group_concat(name, ' ') FROM tasks", "third-1 third-2 third-3");
    expect_stored(store, "SELECT group_concat(name, ' ') FROM (SELECT name FROM task_classes ORDER BY name)",
                  "black blue green red white yellow");
    expect_stored(store, "SELECT count(*) || ' ' || count(cosine) FROM task_similarities", "6 6");
    expect_stored(store, "SELECT count(*) || '' FROM evaluations", "12");
    must(query_named(store, "classes", &(struct query_filter){.dataset = "third-2"}, &table, &error));
    assert_int_equal(table_rows(&table), 2);
    table_free(&table);
    table = (struct table){0};
    must(query_named(store, "similarity", &(struct query_filter){0}, &table, &error));
    assert_int_equal(table_rows(&table), 6);
    table_free(&table);
    const char *name = dataset_class_name(run.experiment->data.tasks[0].dataset, 0);
    for (size_t i = 0; i < 2; i++, name = "purple")
        assert_int_equal(
            store_add(store, 1, "task_classes",
                      NAMED({"task", value_integer(0)}, {"class", value_integer(0)}, {"name", value_text(name)}),
                      &error),
            i == 0 ? OK : ERROR_ARGUMENT);
    error_tells((const char *const[]){"task 0", "\"purple\"", "cut in another way", NULL});
    store_close(store);
    small_run_close(&run);
}
