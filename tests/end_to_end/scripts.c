/* Runs the cases of a script, each in a workshop of its own; scripts/README.md has the language.
 *
 *     scripts FILE
 */
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "core/alloc.h"
#include "core/file.h"
#include "models/clip.h"
#include "tests/end_to_end/rows.h"

static char *lines[2000];   /* of the script, ended by NULL */
static char **next;         /* the line behind that which is run */
static struct text prelude; /* the script's lines "@ ", which the shell reads before each command */

static bool begins(const char *line, const char *word)
{
    return line != NULL && strncmp(line, word, strlen(word)) == 0;
}

/* The part before a mark, which is cut there, and what follows it. */
static char *behind(char *text, const char *mark)
{
    char *found = strstr(text, mark);
    if (found == NULL)
        return NULL;
    *found = 0;
    return found + strlen(mark);
}

/* --- Commands --- */

/* The text has the words: " words"; or has them not, "! words", or so many times, "=3 words". */
static void expect_words(const char *command, const char *text, const char *expected)
{
    const char *words = strchr(expected, ' ');
    if (words == NULL)
        fail_msg("%s: expected words in \"%s\"", command, expected);
    size_t found = words_count(text, words + 1);
    if (*expected == ' ' ? found == 0 : found != strtoul(expected + 1, NULL, 10))
        fail_msg("%s: expected \"%s\", found:\n%s", command, expected, text);
}

/* The status of a shell's $?, and what the next lines expect of it and of its output. */
static void expect_outcome(const char *command, struct outcome outcome)
{
    int expected = begins(*next, "? ") ? atoi(*next++ + 2) : 0,
        found = outcome.signal > 0 ? 128 + outcome.signal : outcome.exit_status;
    if (found != expected)
        fail_msg("%s: expected exit status %d, found %d: %s%s", command, expected, found, outcome.out.data,
                 outcome.errors.data);
    for (; begins(*next, ">") || begins(*next, "2>"); next++)
        if (**next == '>')
            expect_words(command, outcome.out.data, *next + 1);
        else
            expect_words(command, outcome.errors.data, *next + 2);
    outcome_free(&outcome);
}

static struct outcome run(const char *command)
{
    char *whole = path_format("%s%s", prelude.data, command);
    struct outcome outcome = workshop_runs(whole);
    free(whole);
    return outcome;
}

static void run_command(char *command)
{
    expect_outcome(command, run(command));
}

/* What it answers is in the file "out". */
static void run_unprivileged(char *arguments)
{
    struct outcome outcome = program_run_as_nobody(arguments);
    scratch_write_text(&workshop, "out", outcome.out.data);
    expect_outcome(arguments, outcome);
}

/* "2 command => words": with this exit status; "nobody mtil …", or any. */
static void refuse_command(char *line)
{
    char *command = behind(line, " "), *words = behind(command, " => ");
    bool nobody = begins(line, "nobody");
    outcome_refuses(nobody ? program_run_as_nobody(command + strlen("mtil ")) : run(command), command, atoi(line),
                    words);
}

/* --- A process beside them --- */

static struct process beside;

static bool may_be_written(const char *name)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open_v2(scratch_file(&workshop, name), &database, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    bool may = sqlite3_exec(database, "BEGIN IMMEDIATE; ROLLBACK", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(database);
    return may;
}

static void start_process(char *arguments)
{
    char number[16];
    program_start(&beside, arguments);
    snprintf(number, sizeof number, "%d", (int)beside.id);
    setenv("BESIDE", number, 1);
}

static void await_file(char *pattern)
{
    program_wait_for_file(&beside, pattern);
}

static void await_words(char *words)
{
    program_wait_for_words(&beside, words);
}

/* "ends 10": within ten seconds. */
static void end_process(char *seconds)
{
    siginfo_t ended = {0};
    for (long i = 200 * strtol(seconds, NULL, 10); i > 0 && ended.si_pid == 0; i--) {
        assert_int_equal(waitid(P_PID, (id_t)beside.id, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (*seconds != 0 && ended.si_pid == 0)
        kill(beside.id, SIGKILL);
    expect_outcome("the process beside", program_wait(&beside));
}

/* It stands still outside a transaction. */
static void pause_process(char *database)
{
    siginfo_t state;
    do {
        assert_int_equal(kill(beside.id, SIGCONT), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(kill(beside.id, SIGSTOP), 0);
        assert_int_equal(waitid(P_PID, (id_t)beside.id, &state, WSTOPPED | WEXITED | WNOWAIT), 0);
        assert_int_equal(state.si_code, CLD_STOPPED);
    } while (!may_be_written(database));
}

/* The run of a sweep beside stands still likewise, and $RUN is its number. The scripts adopt it: when a stopped process falls to
 * init, its group is orphaned, and the kernel wakes it with SIGHUP and SIGCONT. */
static void pause_run(char *database)
{
    char name[64], number[16] = "";
    snprintf(name, sizeof name, "/proc/%d/task/%d/children", (int)beside.id, (int)beside.id);
    FILE *file = fopen(name, "r");
    assert_true(file != NULL && fscanf(file, "%15s", number) == 1);
    fclose(file);
    setenv("RUN", number, 1);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    do {
        kill(atoi(number), SIGCONT);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        kill(atoi(number), SIGSTOP);
    } while (!may_be_written(database));
}

static void refuse_process(char *words)
{
    assert_int_equal(kill(beside.id, SIGCONT), 0);
    outcome_refuses(program_wait(&beside), "the process beside", 1, words);
}

/* --- Databases --- */

static void expect_same(struct text *rows, struct text *others)
{
    assert_string_equal(rows->data, others->data);
    text_free(rows);
    text_free(others);
}

static void query_database(char *name)
{
    struct text expected = {0}, rows = {0};
    char *sql = behind(name, " ");
    text_add(&expected, "%s", "");
    for (; begins(*next, "| "); next++)
        text_add(&expected, "%s\n", *next + 2);
    rows_query(name, sql, &rows);
    expect_same(&rows, &expected);
}

static void edit(const char *name, const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(scratch_file(&workshop, name), &database), SQLITE_OK);
    sqlite3_exec(database, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static void edit_database(char *name)
{
    char *sql = behind(name, " ");
    edit(name, sql);
}

/* Some line of mtil verify's names what and where, and a run that was edited: not the first. */
static bool names_fault(char *found, const char *what, const char *where)
{
    for (char *line = strtok(found, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        size_t run = strcspn(line, ","), size = strlen(what);
        if (begins(line + run + 1, what) && line[run + 1 + size] == ',' && strstr(line + run, where) != NULL &&
            line[0] != '1')
            return true;
    }
    return false;
}

static void find_fault(char *sql)
{
    char *what = behind(sql, " => "), *where = behind(what, " | ");
    assert_int_equal(workshop_shell("cp results.db copy.db"), 0);
    edit("copy.db", sql);
    struct outcome outcome = workshop_runs("mtil verify copy.db --format csv");
    if (outcome.exit_status != 1 || !names_fault(outcome.out.data, what, where))
        fail_msg("%s: expected %s, %s, found exit status %d: %s", sql, what, where, outcome.exit_status,
                 outcome.errors.data);
    outcome_free(&outcome);
}

static sqlite3 *rival;

/* As another program that writes. */
static void lock_database(char *name)
{
    assert_int_equal(sqlite3_open(scratch_file(&workshop, name), &rival), SQLITE_OK);
    sqlite3_busy_timeout(rival, 60000);
    assert_int_equal(sqlite3_exec(rival, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
}

static void unlock_database(char *rest)
{
    assert_int_equal(sqlite3_exec(rival, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(rival), SQLITE_OK);
}

/* Two databases have the same rows: every digit, but for clocks, machines and paths. */
static void compare_databases(char *name)
{
    struct text rows = {0}, others = {0};
    rows_read(behind(name, " "), &others);
    rows_read(name, &rows);
    expect_same(&rows, &others);
}

/* What was computed is the same, in whatever order runs came to the databases. */
static void compare_computed(char *name)
{
    static const char *const computed[] = {
        "SELECT policy, seed, after_task, task, correct, hex(data) FROM runs JOIN evaluations USING (run) "
        "JOIN per_image USING (run, task, after_task) ORDER BY 1, 2, 3, 4",
        "SELECT policy, seed, task, iteration, loss FROM runs JOIN steps USING (run) ORDER BY 1, 2, 3, 4",
    };
    const char *other = behind(name, " ");
    for (size_t i = 0; i < sizeof computed / sizeof *computed; i++) {
        struct text rows = {0}, others = {0};
        rows_query(name, computed[i], &rows);
        rows_query(other, computed[i], &others);
        assert_true(rows.size > 100);
        expect_same(&rows, &others);
    }
}

/* --- Files --- */

static float value_of(const char *change, size_t i)
{
    if (strcmp(change, "other") == 0)
        return 0.1f * (float)(i % 7);
    if (strcmp(change, "huge") == 0) /* finite in the file, but not what is computed */
        return (i * 2654435761u & 0x10000) != 0 ? 1e38f : -1e38f;
    return i == 77 ? NAN : 1000;
}

/* False: it is left out. */
static bool change_tensor(struct safetensor *tensor, const char *name, const char *change)
{
    static float values[1 << 16];
    if (strcmp(change, "dropped") == 0)
        return strstr(tensor->name, name) == NULL;
    if (strcmp(tensor->name, name) != 0)
        return true;
    assert_true(safetensor_elements(tensor) <= sizeof values / sizeof *values);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = value_of(change, i);
    if (begins(change, "name="))
        tensor->name = change + 5;
    else if (strcmp(change, "halved") == 0)
        tensor->shape[0] /= 2;
    else if (strcmp(change, "I32") == 0)
        tensor->type = SAFETENSOR_I32;
    else
        tensor->data = (const uint8_t *)values;
    return true;
}

/* Of the metadata those of a CLIP are kept. */
static void rewrite_tensor(char *name)
{
    static const char *const keys[CLIP_METADATA] = {"image_heads", "text_heads", "activation", "pixels"};
    char *tensor = behind(name, " "), *change = behind(tensor, " ");
    struct safetensors *file = workshop_tensors(name);
    struct safetensor *tensors = xcalloc(safetensors_count(file), sizeof *tensors);
    struct safetensors_metadata metadata[CLIP_METADATA];
    size_t count = 0, known = 0;
    for (size_t i = 0; i < CLIP_METADATA; i++) {
        const char *value = safetensors_metadata_value(file, keys[i]);
        if (value != NULL)
            metadata[known++] = (struct safetensors_metadata){keys[i], value};
    }
    for (size_t i = 0; i < safetensors_count(file); i++) {
        tensors[count] = *safetensors_at(file, i);
        count += change_tensor(&tensors[count], tensor, change);
    }
    workshop_write(name, tensors, count, metadata, known);
    free(tensors);
    safetensors_close(file);
}

/* "FROM TO KEY=VALUE …": the same tensors, of which the file says that. */
static void write_stating(char *from)
{
    struct safetensors_metadata metadata[8];
    size_t count = 0;
    char *to = behind(from, " "), *rest = behind(to, " ");
    for (char *key; (key = strsep(&rest, " ")) != NULL; count++)
        metadata[count] = (struct safetensors_metadata){key, behind(key, "=")};
    struct safetensors *file = workshop_tensors(from);
    workshop_write(to, safetensors_at(file, 0), safetensors_count(file), metadata, count);
    safetensors_close(file);
}

/* clip.safetensors.index.json and two shards, with the tensors of the file. */
static void write_shards(char *name)
{
    struct text map = {0};
    struct safetensors *file = workshop_tensors(name);
    size_t count = safetensors_count(file), half = count / 2;
    for (size_t i = 0; i < count; i++)
        text_add(&map, "%s\"%s\": \"shard-%d\"", i > 0 ? ", " : "{\"weight_map\": {", safetensors_at(file, i)->name,
                 i < half ? 1 : 2);
    text_add(&map, "}}");
    scratch_write_text(&workshop, "clip.safetensors.index.json", map.data);
    workshop_write("shard-1", safetensors_at(file, 0), half, NULL, 0);
    workshop_write("shard-2", safetensors_at(file, half), count - half, NULL, 0);
    safetensors_close(file);
    text_free(&map);
}

/* --- Cases --- */

static const struct {
    const char *word;
    void (*run)(char *rest); /* of the line; takes those behind it that belong to it */
} directives[] = {{"$ ", run_command},           {"$nobody mtil ", run_unprivileged},
                  {"& mtil ", start_process},    {"await ", await_file},
                  {"says ", await_words},        {"ends", end_process},
                  {"pause run ", pause_run},     {"pause ", pause_process},
                  {"go on => ", refuse_process}, {"!", refuse_command},
                  {"sql ", query_database},      {"edit ", edit_database},
                  {"fault ", find_fault},        {"same ", compare_databases},
                  {"alike ", compare_computed},  {"tensor ", rewrite_tensor},
                  {"lock ", lock_database},      {"unlock", unlock_database},
                  {"states ", write_stating},    {"shards ", write_shards}};

static void run_line(void)
{
    char *line = *next++;
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (begins(line, directives[i].word)) {
            directives[i].run(line + strlen(directives[i].word));
            return;
        }
    fail_msg("not a line of a script: %s", line);
}

static void a_case_holds(void **state)
{
    workshop_open();
    next = *state;
    while (*next != NULL && **next == '#')
        next++;
    while (*next != NULL && !begins(*next, "# "))
        if (**next == 0 || **next == '#')
            next++;
        else
            run_line();
    workshop_close();
}

int main(int argc, char **argv)
{
    struct bytes bytes;
    struct error error = {0};
    size_t count = 0;
    setenv("SCRIPTS", SCRIPTS, 1);
    if (argc != 2 || file_read(argv[1], FILE_LIMIT, &bytes, &error) != OK) {
        fprintf(stderr, "scripts FILE: %s\n", error.message);
        return 1;
    }
    text_add(&prelude, "%s", "");
    for (char *line = (char *)bytes.data, *rest; line != NULL && count + 1 < sizeof lines / sizeof *lines;
         line = rest) {
        rest = behind(line, "\n");
        lines[count++] = line;
        if (begins(line, "@ "))
            text_add(&prelude, "%s\n", line + 2);
        if (begins(line, "# ") && (count == 1 || *lines[count - 2] != '#'))
            test_list((int)count, (struct CMUnitTest){line + 2, a_case_holds, NULL, NULL, &lines[count - 1]});
    }
    int failed = test_run();
    text_free(&prelude);
    bytes_free(&bytes);
    return failed;
}
