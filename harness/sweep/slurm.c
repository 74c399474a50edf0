#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/file_writer.h"
#include "core/scope.h"
#include "core/text.h"
#include "harness/sweep/child.h"
#include "harness/sweep/sweep.h"
#include "results/store/join.h"
#include "results/store/live.h"

/* FOLDER/databases/RUN.db; the caller frees. */
static char *part_database(const struct sweep *sweep, size_t run)
{
    return path_format("%s/databases/%zu.db", sweep->folder, run);
}

/* --- Standings --- */

/* The last message of a run that is not running. */
static void read_last_words(const struct sweep *sweep, size_t index)
{
    char message[LOG_TAIL_MESSAGE];
    OWNED char *log = path_format("%s/logs/%zu.log", sweep->folder, index);
    log_tail_line(log, 0, message);
    free(sweep->runs[index].failure);
    sweep->runs[index].failure = *message != 0 ? path_format("%s (%s)", message, log) : NULL;
}

/* A database without the run, or one that cannot be read yet, belongs to a run that has just started. */
static status look_into(struct sweep *sweep, size_t index, struct store *store, enum sweep_parts parts,
                        struct error *error)
{
    struct sweep_run *run = &sweep->runs[index];
    enum run_status past = RUN_RUNNING;
    int64_t row;
    TRY(store_run_find(store, sweep->configurations[run->configuration].hash, (int64_t)run->seed, &row, &past, error));
    if (row == 0)
        return OK;
    if (past == RUN_FINISHED) {
        run->standing = SWEEP_FINISHED;
        run->row = 0;
        return OK;
    }
    if (live_has_process(store, row))
        run->standing = SWEEP_ELSEWHERE;
    else if (parts == PARTS_GO_ON)
        run->standing = SWEEP_UNFINISHED;
    return OK;
}

static status look_at(struct sweep *sweep, size_t index, enum sweep_parts parts, struct error *error)
{
    SCOPED(store_close_at) struct store *store = NULL;
    OWNED char *path = part_database(sweep, index);
    if (file_exists(path) && store_open(&store, path, STORE_READ, NULL) == OK)
        TRY(look_into(sweep, index, store, parts, error));
    if (parts == PARTS_GO_ON && sweep_wants(&sweep->runs[index]))
        read_last_words(sweep, index);
    return OK;
}

status sweep_parts_look(struct sweep *sweep, enum sweep_parts parts, struct error *error)
{
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].standing != SWEEP_FINISHED) {
            if (parts == PARTS_GO_ON)
                sweep->runs[i].standing = SWEEP_MISSING;
            TRY(look_at(sweep, i, parts, error));
        }
    return OK;
}

/* --- Joining --- */

static status join(const struct sweep *sweep, const char *const *paths, size_t count, const struct log *log,
                   struct error *error)
{
    OWNED struct join_counts *counts = xcalloc(count, sizeof *counts);
    struct join_settings settings = {.log = log};
    TRY(join_databases(sweep->database, paths, count, &settings, counts, error));
    log_info(log, "%zu run%s joined into %s", count, count == 1 ? "" : "s", sweep->database);
    return OK;
}

status sweep_parts_collect(const struct sweep *sweep, const struct log *log, struct error *error)
{
    size_t count = 0;
    OWNED char **paths = xcalloc(sweep->run_count, sizeof *paths);
    status result = OK;
    for (size_t i = 0; i < sweep->run_count; i++)
        if (sweep->runs[i].standing == SWEEP_FINISHED && sweep->runs[i].row == 0)
            paths[count++] = part_database(sweep, i);
    if (count > 0)
        result = join(sweep, (const char *const *)paths, count, log, error);
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    return result;
}

enum {
    SLURM_JOB = 64,        /* bytes of a number */
    JOBS_MOST = 1 << 20,   /* bytes of numbers */
    SECONDS_TO_STOP = 120, /* between the stop request and the end of a job's time */
    USUAL_ARRAY = 1001     /* Slurm's default of MaxArraySize */
};

/* Absolute paths in the scripts. */
struct places {
    char program[PATH_MAX], here[PATH_MAX], folder[PATH_MAX], suite[PATH_MAX];
    char *collect, *job; /* files in the folder */
};

/* --- Text --- */

static void add_word(struct text *text, const char *word)
{
    text_add(text, " ");
    text_add_word(text, word);
}

static void add_setting(struct text *text, const char *name, const char *value)
{
    if (value != NULL)
        text_add(text, "#SBATCH --%s=\"%s\"\n", name, value);
}

/* --- Scripts --- */

/* The head of both scripts; one setting per line, so that it can be changed by hand. */
static void add_head(struct text *text, const struct sweep *sweep, const struct slurm_options *options,
                     const struct places *places, const char *suffix, const char *log)
{
    const char *slash = strrchr(sweep->suite, '/'), *name = slash != NULL ? slash + 1 : sweep->suite;
    text_add(text, "#SBATCH --job-name=\"mtil-%.*s%s\"\n", (int)strcspn(name, "."), name, suffix);
    text_add(text, "#SBATCH --output=\"%s/logs/%s\"\n#SBATCH --open-mode=append\n", places->folder, log);
    add_setting(text, "partition", options->partition);
    add_setting(text, "time", options->time);
    for (const char *word = options->arguments; word != NULL && *(word += strspn(word, " ")) != 0;
         word += strcspn(word, " "))
        text_add(text, "#SBATCH %.*s\n", (int)strcspn(word, " "), word);
}

/* Runs that are one array, whose tasks count from 0: a power of ten at most, so that the digits of a task end a run's number. */
struct chunk {
    size_t first, end;
    int digits;
};

/* "0-3,7,9-11": the runs to be computed. */
static void add_array(struct text *text, const struct sweep *sweep, const struct chunk *chunk,
                      const struct slurm_options *options)
{
    text_add(text, "#SBATCH --array=");
    const char *separator = "";
    for (size_t i = chunk->first; i < chunk->end; i++) {
        if (!sweep_wants(&sweep->runs[i]))
            continue;
        size_t first = i;
        while (i + 1 < chunk->end && sweep_wants(&sweep->runs[i + 1]))
            i++;
        text_add(text, first == i ? "%s%zu" : "%s%zu-%zu", separator, first - chunk->first, i - chunk->first);
        separator = ",";
    }
    if (options->jobs > 0)
        text_add(text, "%%%zu", options->jobs);
    text_add(text, "\n");
}

static void add_runs(struct text *text, const struct sweep *sweep, const struct chunk *chunk)
{
    for (size_t i = chunk->first; i < chunk->end; i++) {
        if (!sweep_wants(&sweep->runs[i]))
            continue;
        SCOPED(strings_free) struct strings arguments = {0};
        sweep_arguments(sweep, i, &arguments);
        text_add(text, "%zu) run", i);
        for (size_t k = 2; k < arguments.count; k++) /* after "run" and the suite */
            add_word(text, arguments.items[k]);
        text_add(text, " ;;\n");
    }
}

static void add_place(struct text *text, const char *name, const char *path)
{
    text_add(text, "%s=", name);
    text_add_word(text, path);
    text_add(text, "\n");
}

static void write_batch(struct text *text, const struct sweep *sweep, const struct chunk *chunk,
                        const struct slurm_options *options, const struct places *places)
{
    char log[64] = "%a.log"; /* of Slurm; "1%3a.log" is 1042.log of task 42 */
    size_t digits = (size_t)pow(10, chunk->digits);
    if (chunk->first > 0)
        snprintf(log, sizeof log, "%zu%%%da.log", chunk->first / digits, chunk->digits);
    text_add(text,
             "#!/bin/bash\n"
             "# The runs of a sweep, one per task of the array; written by mtil sweep --slurm, which submits those "
             "that are\n"
             "# not finished. Each resumes where it was stopped and has its own database; collect.sh joins them.\n");
    add_head(text, sweep, options, places, "", log);
    add_array(text, sweep, chunk, options);
    if (options->cpus > 0)
        text_add(text, "#SBATCH --cpus-per-task=%zu\n", options->cpus);
    add_setting(text, "mem", options->memory);
    text_add(text,
             "# Before its time limit a run is asked to save and stop; a preempted job is queued again.\n"
             "#SBATCH --signal=B:TERM@%d\n#SBATCH --requeue\n\nset -eu\ncd",
             SECONDS_TO_STOP);
    add_word(text, places->here);
    text_add(text, "\n");
    add_place(text, "program", places->program);
    add_place(text, "suite", places->suite);
    add_place(text, "folder", places->folder);
    text_add(text,
             "number=$((SLURM_ARRAY_TASK_ID + %zu))\n"
             "run() {\n"
             "    exec \"$program\" run \"$suite\" \"$@\" run.database=\"$folder/databases/$number.db\" \\\n"
             "        run.folder=\"$folder/runs\" run.threads=\"${SLURM_CPUS_PER_TASK:-${SLURM_CPUS_ON_NODE:-0}}\"\n"
             "}\n\ncase \"$number\" in\n",
             chunk->first);
    add_runs(text, sweep, chunk);
    text_add(text, "*) echo \"this sweep has no run $number left\" >&2; exit 2 ;;\nesac\n");
}

static void write_collect(struct text *text, const struct sweep *sweep, const struct slurm_options *options,
                          const struct places *places)
{
    text_add(text, "#!/bin/bash\n# Joins the databases of a sweep's runs; written by mtil sweep --slurm.\n");
    add_head(text, sweep, options, places, "-collect", "collect.log");
    text_add(text, "\nset -eu\ncd");
    add_word(text, places->here);
    text_add(text, "\nexec");
    add_word(text, places->program);
    text_add(text, " sweep --collect%s", options->request->values == GRID_LITERAL ? " --grid=false" : "");
    add_word(text, sweep->suite);
    for (size_t i = 0; i < options->request->count; i++)
        add_word(text, options->request->words[i]);
    text_add(text, "\n");
}

static status save_script(const char *path, const struct text *text, struct error *error)
{
    TRY(file_write(path, text->data, text->size, error));
    chmod(path, 0755); /* executable by hand; sbatch does not need it */
    return OK;
}

/* --- Places --- */

/* sbatch splits its settings into words and reads file names as patterns. */
static status check_place(const char *path, struct error *error)
{
    if (strpbrk(path, "\"\\%\n") == NULL)
        return OK;
    return error_set(error, ERROR_ARGUMENT,
                     "%s: sbatch does not take quotes, backslashes, %% and line ends in a file name; name another "
                     "run.folder",
                     path);
}

static status find_places(const struct sweep *sweep, struct places *places, struct error *error)
{
    TRY(sweep_make_folder(sweep, "logs", error));
    TRY(sweep_make_folder(sweep, "databases", error));
    bool is_file = strpbrk(sweep->suite, "/.") != NULL;
    if (realpath("/proc/self/exe", places->program) == NULL || getcwd(places->here, sizeof places->here) == NULL ||
        realpath(sweep->folder, places->folder) == NULL || (is_file && realpath(sweep->suite, places->suite) == NULL))
        return error_set(error, ERROR_IO, "%s: the folders of the sweep cannot be named", sweep->folder);
    if (!is_file)
        snprintf(places->suite, sizeof places->suite, "%s", sweep->suite);
    TRY(check_place(places->folder, error));
    places->collect = path_format("%s/collect.sh", places->folder);
    places->job = path_format("%s/job", places->folder);
    return OK;
}

static void free_places(struct places *places)
{
    free(places->collect);
    free(places->job);
}

/* Checks words that become lines of a script. */
static status check_words(const struct slurm_options *options, struct error *error)
{
    const char *const words[] = {options->partition, options->time, options->memory, options->arguments};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i] != NULL && strpbrk(words[i], "\"\\\n") != NULL)
            return error_set(error, ERROR_ARGUMENT,
                             "command line: %s: sbatch does not take quotes, backslashes and line ends here", words[i]);
    return OK;
}

/* --- Submission --- */

/* The number printed by "sbatch --parsable", in the last line that begins with one: "12;cluster". */
static status read_job(const char *output, char job[SLURM_JOB], struct error *error)
{
    job[0] = 0;
    for (const char *line = output; *line != 0; line += strcspn(line, "\n"), line += *line != 0) {
        size_t length = strspn(line, "0123456789");
        if (length > 0 && length < SLURM_JOB && strchr(";\n", line[length]) != NULL)
            snprintf(job, SLURM_JOB, "%.*s", (int)length, line);
    }
    if (*job != 0)
        return OK;
    return error_set(error, ERROR_FORMAT, "sbatch: expected the number of a job, found \"%.200s\"", output);
}

static status submit(const char *dependency, const char *script, char job[SLURM_JOB], struct error *error)
{
    SCOPED(text_free) struct text output = {0};
    TRY(dependency == NULL
            ? child_run((const char *[]){"sbatch", "--parsable", script, NULL}, &output, error)
            : child_run((const char *[]){"sbatch", "--parsable", dependency, script, NULL}, &output, error));
    return read_job(output.data, job, error);
}

/* Two arrays of the same runs would write the same databases. A job that squeue does not know has ended; where it cannot be asked,
 * nothing is known. */
static status refuse_queued(const struct sweep *sweep, const char *path, struct error *error)
{
    SCOPED(bytes_free) struct bytes bytes = {0};
    char *place, *job;
    if (!file_exists(path))
        return OK;
    TRY(file_read(path, JOBS_MOST, &bytes, error));
    for (job = strtok_r((char *)bytes.data, ",\n", &place); job != NULL; job = strtok_r(NULL, ",\n", &place)) {
        SCOPED(text_free) struct text output = {0};
        status asked = child_run((const char *[]){"squeue", "--noheader", "--jobs", job, NULL}, &output, error);
        bool listed = asked == OK && output.size > 0,
             ended = asked == OK || (output.data != NULL && strstr(output.data, "Invalid job id") != NULL);
        if (!ended)
            return error_context(error, "whether a job of this sweep is in the queue");
        if (listed)
            return error_set(error, ERROR_BUSY,
                             "%s: job %s of this sweep is in the queue; wait for it (squeue --jobs %s) or cancel it "
                             "(scancel %s)",
                             sweep->folder, job, job, job);
    }
    return OK;
}

/* The digits of the largest number below 10ⁿ that any task of an array can have here. */
static int task_digits(void)
{
    SCOPED(text_free) struct text output = {0};
    size_t most = USUAL_ARRAY;
    int digits = 1;
    const char *line = child_run((const char *[]){"scontrol", "show", "config", NULL}, &output, NULL) == OK
                           ? strstr(output.data, "MaxArraySize")
                           : NULL;
    if (line != NULL)
        most = strtoull(line + strcspn(line, "0123456789"), NULL, 10);
    most = most > 0 ? most : USUAL_ARRAY;
    while (pow(10, digits + 1) <= (double)most)
        digits++;
    return digits;
}

static bool any_wanted(const struct sweep *sweep, const struct chunk *chunk)
{
    for (size_t i = chunk->first; i < chunk->end; i++)
        if (sweep_wants(&sweep->runs[i]))
            return true;
    return false;
}

/* With a limit of tasks at a time, an array waits for the one before. */
static status submit_chunk(const struct sweep *sweep, const struct chunk *chunk, const struct slurm_options *options,
                           const struct places *places, struct text *jobs, struct error *error)
{
    SCOPED(text_free) struct text script = {0};
    char job[SLURM_JOB], dependency[SLURM_JOB + 32];
    const char *last = jobs->size > 0 ? strrchr(jobs->data, ',') : NULL;
    snprintf(dependency, sizeof dependency, "--dependency=afterany:%s",
             last != NULL     ? last + 1
             : jobs->size > 0 ? jobs->data
                              : "");
    OWNED char *path = chunk->first == 0 ? path_format("%s/batch.sh", places->folder)
                                         : path_format("%s/batch-%zu.sh", places->folder, chunk->first);
    write_batch(&script, sweep, chunk, options, places);
    status result = save_script(path, &script, error);
    NEXT(result, submit(jobs->size > 0 && options->jobs > 0 ? dependency : NULL, path, job, error));
    if (result != OK)
        return jobs->size > 0
                   ? error_context(error, "only the runs below %zu were submitted, as job %s", chunk->first, jobs->data)
                   : result;
    text_add(jobs, jobs->size > 0 ? ",%s" : "%s", job);
    return file_write(places->job, jobs->data, jobs->size, error);
}

static status submit_collect(const struct places *places, const struct text *jobs, struct error *error)
{
    char collecting[SLURM_JOB];
    OWNED char *dependency = path_format("--dependency=afterany:%s", jobs->data);
    for (char *comma = dependency; (comma = strchr(comma, ',')) != NULL;)
        *comma = ':';
    status result = submit(dependency, places->collect, collecting, error);
    return result == OK
               ? OK
               : error_context(error, "job %s was submitted, but not the job that joins its databases", jobs->data);
}

static status submit_all(const struct sweep *sweep, const struct slurm_options *options, const struct places *places,
                         struct text *jobs, struct error *error)
{
    SCOPED(text_free) struct text collect = {0};
    struct chunk chunk = {.digits = task_digits()};
    TRY(refuse_queued(sweep, places->job, error));
    write_collect(&collect, sweep, options, places);
    TRY(save_script(places->collect, &collect, error));
    for (; chunk.first < sweep->run_count; chunk.first = chunk.end) {
        size_t most = chunk.first + (size_t)pow(10, chunk.digits);
        chunk.end = most < sweep->run_count ? most : sweep->run_count;
        if (any_wanted(sweep, &chunk))
            TRY(submit_chunk(sweep, &chunk, options, places, jobs, error));
    }
    return submit_collect(places, jobs, error);
}

status slurm_submit(const struct sweep *sweep, const struct slurm_options *options, struct text *jobs,
                    struct error *error)
{
    SCOPED(free_places) struct places places = {.collect = NULL};
    TRY(check_words(options, error));
    TRY(find_places(sweep, &places, error));
    return submit_all(sweep, options, &places, jobs, error);
}
