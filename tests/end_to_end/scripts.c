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
#include <sys/wait.h>
#include <time.h>

#include "core/file.h"
#include "tests/end_to_end/rows.h"

static char *lines[2000];   /* of the script, ended by NULL */
static struct text prelude; /* its lines "@ ", which the shell reads before each command */

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

/* The status of a shell's $?, which line[1] may expect, and what the lines behind that expect of its output. */
static size_t expect_outcome(const char *command, struct outcome outcome, char **line)
{
    size_t used = 1;
    int expected = begins(line[used], "? ") ? atoi(line[used++] + 2) : 0,
        found = outcome.signal > 0 ? 128 + outcome.signal : outcome.exit_status;
    if (found != expected)
        fail_msg("%s: expected exit status %d, found %d: %s%s", command, expected, found, outcome.out.data,
                 outcome.errors.data);
    for (; begins(line[used], ">") || begins(line[used], "2>"); used++)
        if (*line[used] == '>')
            expect_words(command, outcome.out.data, line[used] + 1);
        else
            expect_words(command, outcome.errors.data, line[used] + 2);
    outcome_free(&outcome);
    return used;
}

/* In the shell, or "mtil …" as nobody. */
static struct outcome run(const struct workshop *w, const char *command, bool nobody)
{
    if (nobody)
        return program_run(w, &(struct launch){.arguments = command + strlen("mtil "), .unprivileged = true});
    char *whole = path_format("%s%s", prelude.data, command);
    struct outcome outcome = workshop_runs(w, whole);
    free(whole);
    return outcome;
}

static size_t run_command(const struct workshop *w, char **line)
{
    return expect_outcome(line[0] + 2, run(w, line[0] + 2, false), line);
}

/* What it answers is in the file "out". */
static size_t run_unprivileged(const struct workshop *w, char **line)
{
    const char *command = line[0] + strlen("$nobody ");
    struct outcome outcome = run(w, command, true);
    scratch_write_text(&w->scratch, "out", outcome.out.data);
    return expect_outcome(command, outcome, line);
}

static size_t refuse_command(const struct workshop *w, char **line)
{
    char *command = behind(line[0], " "), *words = behind(command, " => ");
    int expected = atoi(line[0] + 1);
    outcome_refuses(w, run(w, command, begins(line[0], "!nobody")), command, expected, words);
    return 1;
}

/* --- A process beside them --- */

static struct process beside;

static size_t start_process(const struct workshop *w, char **line)
{
    char number[16];
    program_start(&beside, w, &(struct launch){.arguments = line[0] + strlen("& mtil ")});
    snprintf(number, sizeof number, "%d", (int)beside.id);
    setenv("BESIDE", number, 1);
    return 1;
}

static size_t await_file(const struct workshop *w, char **line)
{
    free(program_wait_for_file(&beside, w, line[0] + 6));
    return 1;
}

static size_t await_words(const struct workshop *w, char **line)
{
    (void)w;
    program_wait_for_words(&beside, line[0] + 5);
    return 1;
}

/* "ends 10": within ten seconds. */
static size_t end_process(const struct workshop *w, char **line)
{
    siginfo_t ended = {0};
    (void)w;
    for (long i = 200 * strtol(line[0] + 4, NULL, 10); i > 0 && ended.si_pid == 0; i--) {
        assert_int_equal(waitid(P_PID, (id_t)beside.id, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (line[0][4] != 0 && ended.si_pid == 0)
        kill(beside.id, SIGKILL);
    return expect_outcome("the process beside", program_wait(&beside), line);
}

/* It stands still outside a transaction. */
static size_t pause_process(const struct workshop *w, char **line)
{
    siginfo_t state;
    do {
        assert_int_equal(kill(beside.id, SIGCONT), 0);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(kill(beside.id, SIGSTOP), 0);
        assert_int_equal(waitid(P_PID, (id_t)beside.id, &state, WSTOPPED | WEXITED | WNOWAIT), 0);
        assert_int_equal(state.si_code, CLD_STOPPED);
    } while (!rows_may_be_written(w, line[0] + 6));
    return 1;
}

static size_t refuse_process(const struct workshop *w, char **line)
{
    char *words = behind(line[0], " => ");
    assert_int_equal(kill(beside.id, SIGCONT), 0);
    outcome_refuses(w, program_wait(&beside), "the process beside", 1, words);
    return 1;
}

/* --- Databases --- */

static size_t query_database(const struct workshop *w, char **line)
{
    struct text rows = {0};
    size_t used = 1;
    char *sql = behind(line[0] + 4, " ");
    text_add(&rows, "%s", "");
    for (; begins(line[used], "| "); used++)
        text_add(&rows, "%s\n", line[used] + 2);
    rows_expect(w, line[0] + 4, sql, rows.data);
    text_free(&rows);
    return used;
}

static void edit(const struct workshop *w, const char *name, const char *sql)
{
    sqlite3 *database;
    char *path = workshop_path(w, name);
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    sqlite3_exec(database, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(database));
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    free(path);
}

static size_t edit_database(const struct workshop *w, char **line)
{
    char *sql = behind(line[0] + 5, " ");
    edit(w, line[0] + 5, sql);
    return 1;
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

static size_t find_fault(const struct workshop *w, char **line)
{
    char *sql = line[0] + 6, *what = behind(sql, " => "), *where = behind(what, " | ");
    assert_int_equal(workshop_shell(w, "cp results.db copy.db"), 0);
    edit(w, "copy.db", sql);
    struct outcome outcome = workshop_runs(w, "mtil verify copy.db --format csv");
    if (outcome.exit_status != 1 || !names_fault(outcome.out.data, what, where))
        fail_msg("%s: expected %s, %s, found exit status %d: %s", sql, what, where, outcome.exit_status,
                 outcome.errors.data);
    outcome_free(&outcome);
    return 1;
}

static sqlite3 *rival;

/* As another program that writes. */
static size_t lock_database(const struct workshop *w, char **line)
{
    assert_int_equal(sqlite3_open(scratch_file(&w->scratch, line[0] + 5), &rival), SQLITE_OK);
    sqlite3_busy_timeout(rival, 60000);
    assert_int_equal(sqlite3_exec(rival, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    return 1;
}

static size_t unlock_database(const struct workshop *w, char **line)
{
    (void)w;
    (void)line;
    assert_int_equal(sqlite3_exec(rival, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(rival), SQLITE_OK);
    return 1;
}

/* Two databases have the same rows: every digit, but for clocks, machines and paths. */
static size_t compare_databases(const struct workshop *w, char **line)
{
    struct text rows[2] = {{0}, {0}};
    char *other = behind(line[0] + 5, " "), *paths[2] = {workshop_path(w, line[0] + 5), workshop_path(w, other)};
    for (int i = 0; i < 2; i++) {
        rows_read(paths[i], &rows[i]);
        free(paths[i]);
    }
    assert_string_equal(rows[0].data, rows[1].data);
    text_free(&rows[0]);
    text_free(&rows[1]);
    return 1;
}

/* What was computed is the same, in whatever order runs came to the databases. */
static size_t compare_computed(const struct workshop *w, char **line)
{
    char *other = behind(line[0] + 6, " ");
    rows_expect_alike(w, line[0] + 6, other);
    return 1;
}

/* --- Files --- */

/* What tensor FILE NAME CHANGE does. */
static struct {
    const char *name, *change;
} wanted;

static float value_wanted(size_t i)
{
    if (strcmp(wanted.change, "other") == 0)
        return 0.1f * (float)(i % 7);
    if (strcmp(wanted.change, "huge") == 0) /* finite in the file, but not what is computed */
        return (i * 2654435761u & 0x10000) != 0 ? 1e38f : -1e38f;
    return i == 77 ? NAN : 1000;
}

static bool change_tensor(struct safetensor *tensor)
{
    static float values[1 << 16];
    if (strcmp(wanted.change, "dropped") == 0)
        return strstr(tensor->name, wanted.name) == NULL;
    if (strcmp(tensor->name, wanted.name) != 0)
        return true;
    assert_true(safetensor_elements(tensor) <= sizeof values / sizeof *values);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = value_wanted(i);
    if (begins(wanted.change, "name="))
        tensor->name = wanted.change + 5;
    else if (strcmp(wanted.change, "halved") == 0)
        tensor->shape[0] /= 2;
    else if (strcmp(wanted.change, "I32") == 0)
        tensor->type = SAFETENSOR_I32;
    else
        tensor->data = (const uint8_t *)values;
    return true;
}

static size_t rewrite_tensor(const struct workshop *w, char **line)
{
    char *file = line[0] + 7, *name = behind(file, " "), *change = behind(name, " ");
    wanted.name = name;
    wanted.change = change;
    workshop_rewrite(w, file, file, change_tensor);
    return 1;
}

/* "states FROM TO KEY=VALUE …": the same tensors, of which the file says that. */
static size_t write_stating(const struct workshop *w, char **line)
{
    struct safetensors_metadata metadata[8];
    size_t count = 0;
    char *to = behind(line[0] + 7, " "), *next = behind(to, " ");
    for (char *key; (key = strsep(&next, " ")) != NULL; count++)
        metadata[count] = (struct safetensors_metadata){key, behind(key, "=")};
    struct safetensors *file = workshop_tensors(w, line[0] + 7);
    workshop_write(w, to, file, 0, safetensors_count(file), metadata, count);
    safetensors_close(file);
    return 1;
}

/* clip.safetensors.index.json and two shards, with the tensors of the file. */
static size_t write_shards(const struct workshop *w, char **line)
{
    struct text map = {0};
    struct safetensors *file = workshop_tensors(w, line[0] + 7);
    size_t count = safetensors_count(file), half = count / 2;
    for (size_t i = 0; i < count; i++)
        text_add(&map, "%s\"%s\": \"shard-%d\"", i > 0 ? ", " : "{\"weight_map\": {", safetensors_at(file, i)->name,
                 i < half ? 1 : 2);
    text_add(&map, "}}");
    scratch_write_text(&w->scratch, "clip.safetensors.index.json", map.data);
    workshop_write(w, "shard-1", file, 0, half, NULL, 0);
    workshop_write(w, "shard-2", file, half, count - half, NULL, 0);
    safetensors_close(file);
    text_free(&map);
    return 1;
}

/* --- Cases --- */

static const struct {
    const char *word;
    size_t (*run)(const struct workshop *w, char **line); /* how many lines it took */
} directives[] = {{"$ ", run_command},          {"$nobody ", run_unprivileged}, {"& mtil ", start_process},
                  {"await ", await_file},       {"says ", await_words},         {"ends", end_process},
                  {"pause ", pause_process},    {"go on =>", refuse_process},   {"!", refuse_command},
                  {"sql ", query_database},     {"edit ", edit_database},       {"fault ", find_fault},
                  {"same ", compare_databases}, {"alike ", compare_computed},   {"tensor ", rewrite_tensor},
                  {"lock ", lock_database},     {"unlock", unlock_database},    {"states ", write_stating},
                  {"shards ", write_shards}};

static size_t run_line(const struct workshop *w, char **line)
{
    for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
        if (begins(line[0], directives[i].word))
            return directives[i].run(w, line);
    fail_msg("not a line of a script: %s", line[0]);
    return 1;
}

static void a_case_holds(void **state)
{
    struct workshop workshop;
    workshop_open(&workshop);
    char **line = *state;
    while (*line != NULL && **line == '#')
        line++;
    for (; *line != NULL && !begins(*line, "# ");)
        line += **line == 0 || **line == '#' ? 1 : run_line(&workshop, line);
    workshop_close(&workshop);
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
    for (char *line = (char *)bytes.data, *next; line != NULL && count + 1 < sizeof lines / sizeof *lines;
         line = next) {
        next = behind(line, "\n");
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
