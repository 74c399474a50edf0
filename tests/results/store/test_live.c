/* What is shown of runs that are going on: what they report beside the database, and the questions that read it. */
#include "tests/results/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "results/query.h"
#include "results/store/live.h"
#include "tests/results/sample.h"

static const struct live training = {"train", "digits", 2, 4, 5, 20, 1.25, 310.4, 185, 0.314};

#define HEAD "run,suite,policy,seed,task,doing,step,done,left,loss,images/s,method\n"

static int create(void **state)
{
    *state = sample_path("results.sqlite");
    return 0;
}

static int destroy(void **state)
{
    sample_remove(*state);
    return 0;
}

static struct store *open_store(void **state, enum store_mode mode)
{
    struct store *store;
    assert_ok(store_open(&store, *state, mode, &error));
    return store;
}

static int64_t start_run(struct store *store, int64_t seed)
{
    struct run_description description = sample_description(seed);
    struct run_start start;
    assert_ok(store_run_start(store, &description, &start, &error));
    return start.run;
}

static void expect(struct store *store, const char *question, const char *expected)
{
    struct table table = {0};
    struct text text = {0};
    bool counts = strcmp(question, "counts") == 0;
    assert_ok(
        query_named(store, question, &(struct query_filter){.status = counts ? NULL : "running"}, &table, &error));
    assert_ok(table_render(&table, TABLE_CSV, false, &text, &error));
    for (char *end; (end = strstr(text.data, "\r\n")) != NULL;)
        memmove(end, end + 1, strlen(end));
    assert_string_equal(text.data, expected);
    text_free(&text);
    table_free(&table);
}

static void a_report_is_read_until_the_run_ends(void **state)
{
    struct store *writer = open_store(state, STORE_WRITE), *reader = open_store(state, STORE_READ);
    struct live live;
    expect(reader, "progress", HEAD);
    expect(reader, "counts", "counts\nno runs\n");
    sample_finished_run(writer, 9);
    int64_t run = start_run(writer, 1);
    assert_true(live_has_process(reader, run) && !live_has_process(reader, run + 1));
    assert_false(live_read(reader, run, &live));
    live_write(writer, run, &training);
    assert_true(!live_read(reader, run + 1, &live) && live_read(reader, run, &live));
    assert_true(live.task == 2 && live.tasks == 4 && live.step == 5 && live.seconds_left == 185 && live.done == 0.314);
    expect(reader, "progress",
           HEAD "2,sample,most_used,1,2/4,train digits,5/20,███░░░░░░░ 31%,3 min 05 s,1.25,310.4,adapters\n");
    expect(reader, "counts", "counts\n\"1 running, 1 finished\"\n");
    char *lock = path_format("%s-lock", (char *)*state);
    assert_int_equal(truncate(lock, run * LIVE_SIZE + 50), 0); /* half a report is none */
    expect(reader, "progress", HEAD "2,sample,most_used,1,,,,,,,,adapters\n");
    live_write(writer, run, &training);
    assert_ok(store_run_end(writer, run, RUN_FINISHED, NULL, &error));
    assert_false(live_read(reader, run, &live) || live_has_process(reader, run));
    free(lock);
    store_close(writer);
    store_close(reader);
}

/* As far as it is committed: here 13 steps of task 2. Tasks of all runs are columns. */
static void without_a_report_the_database_answers(void **state)
{
    struct store *store = open_store(state, STORE_WRITE), *reader = open_store(state, STORE_READ);
    struct run_description description = sample_description(2);
    struct run_start start;
    char reached[256];
    double accuracy[4], mean = 0;
    assert_ok(sample_write(store, start_run(store, 1), 1, -1, 0, 2, 14, &error));
    expect(reader, "progress",
           HEAD "1,sample,most_used,1,3/4,train textures_&_more,13,,,0.548865497112274,,adapters\n");
    description.suite_hash = "another";
    assert_ok(store_run_start(store, &description, &start, &error));
    assert_ok(store_add_task(store, start.run,
                             &(struct task_row){.name = "cars", .classes = 2, .training_images = 8, .test_images = 8},
                             &error));
    assert_ok(store_add_evaluation(store, start.run,
                                   &(struct evaluation_row){.after_task = -1, .correct = 2, .images = 8}, &error));
    for (int64_t task = 0; task < SAMPLE_TASKS; task++)
        mean += accuracy[task] = 100.0 * (double)sample_correct(1, 1, task) / SAMPLE_IMAGES;
    snprintf(reached, sizeof reached,
             "run,after,aircraft,cars,digits,textures_&_more,flowers,mean\n1,digits,%.17g,,%.17g,%.17g,%.17g,%.17g\n"
             "2,zero-shot,,25,,,,25\n",
             accuracy[0], accuracy[1], accuracy[2], accuracy[3], mean / 4);
    expect(reader, "reached", reached);
    store_close(store);
    store_close(reader);
}

static void a_process_that_died_is_reported(void **state)
{
    pid_t child = fork();
    if (child == 0) {
        struct store *store = open_store(state, STORE_WRITE);
        live_write(store, start_run(store, 1), &training);
        _exit(0); /* without a word, as after kill -9 */
    }
    assert_true(child > 0 && waitpid(child, NULL, 0) == child);
    struct store *reader = open_store(state, STORE_READ);
    expect(reader, "progress", HEAD "1,sample,most_used,1,2/4,process is gone,5/20,███░░░░░░░ 31%,,1.25,,adapters\n");
    expect(reader, "counts", "counts\n1 gone\n");
    store_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_report_is_read_until_the_run_ends, create, destroy),
        cmocka_unit_test_setup_teardown(without_a_report_the_database_answers, create, destroy),
        cmocka_unit_test_setup_teardown(a_process_that_died_is_reported, create, destroy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
