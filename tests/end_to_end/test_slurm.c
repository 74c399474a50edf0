/* Sweeps on a cluster, with programs that stand in for Slurm's: sbatch runs a job at once. A real one is tests/cluster/. */
#include "tests/end_to_end/rows.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

#define GRID "--grid weights=clip.safetensors,other.safetensors seed=1..2 "

/* Job numbers count from 42; "refusal" in the folder is what sbatch says no with, "queue" what squeue shows. */
static const char sbatch[] = "#!/bin/bash\n"
                             "[ ! -e refusal ] || { cat refusal >&2; exit 1; }\n"
                             "echo \"$*\" >>submitted\n"
                             "script=${*: -1}\n"
                             "log=$(sed -n 's/^#SBATCH --output=\"\\(.*\\)\"$/\\1/p' \"$script\")\n"
                             "array=$(sed -n 's/^#SBATCH --array=\\([^%]*\\).*$/\\1/p' \"$script\")\n"
                             "for part in ${array//,/ }; do\n"
                             "    for ((task = ${part%-*}; task <= ${part#*-}; task++)); do\n"
                             "        SLURM_ARRAY_TASK_ID=$task bash \"$script\" >>\"${log/\\%a/$task}\" 2>&1\n"
                             "    done\n"
                             "done\n"
                             "[ -n \"$array\" ] || bash \"$script\" >>\"$log\" 2>&1\n"
                             "echo $((41 + $(wc -l <submitted)))\n";
static const char squeue[] = "#!/bin/bash\n[ ! -e queue ] || cat queue\n";

struct cluster {
    struct workshop workshop;
    char *path; /* as it was */
};

static void write_program(const struct workshop *workshop, const char *name, const char *text)
{
    scratch_write_text(&workshop->scratch, name, text);
    assert_int_equal(chmod(scratch_file(&workshop->scratch, name), 0755), 0);
}

static int cluster_open(void **state)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    assert_non_null(cluster);
    workshop_open(&cluster->workshop);
    assert_int_equal(mkdir(scratch_file(&cluster->workshop.scratch, "bin"), 0755), 0);
    write_program(&cluster->workshop, "bin/sbatch", sbatch);
    write_program(&cluster->workshop, "bin/squeue", squeue);
    cluster->path = strdup(getenv("PATH"));
    char *path = path_format("%s/bin:%s", cluster->workshop.scratch.path, cluster->path);
    assert_true(cluster->path != NULL && path != NULL);
    setenv("PATH", path, 1);
    free(path);
    *state = cluster;
    return 0;
}

static int cluster_close(void **state)
{
    struct cluster *cluster = *state;
    setenv("PATH", cluster->path, 1);
    workshop_close(&cluster->workshop);
    free(cluster->path);
    free(cluster);
    return 0;
}

/* The text of the one file for a pattern; the caller frees. */
static struct bytes read_text(const struct workshop *workshop, const char *pattern)
{
    struct bytes bytes;
    struct error error;
    char *path = workshop_find(workshop, pattern);
    if (path == NULL)
        fail_msg("there is no %s", pattern);
    assert_int_equal(file_read(path, FILE_LIMIT, &bytes, &error), OK);
    free(path);
    return bytes;
}

static void expect_text(const struct workshop *workshop, const char *pattern, const char *const *words)
{
    struct bytes bytes = read_text(workshop, pattern);
    struct text text = {0};
    text_add_bytes(&text, (const char *)bytes.data, bytes.size);
    for (size_t i = 0; words[i] != NULL; i++)
        if (strstr(text.data, words[i]) == NULL)
            fail_msg("%s: expected \"%s\" in: %s", pattern, words[i], text.data);
    text_free(&text);
    bytes_free(&bytes);
}

static void expect_words(struct outcome outcome, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++)
        if (strstr(outcome.errors.data, words[i]) == NULL)
            fail_msg("expected \"%s\" in: %s", words[i], outcome.errors.data);
    outcome_free(&outcome);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Jobs compute what a sweep on this machine computes; settings of a job come to the scripts as they were given. */
TEST_WITH(jobs_compute_the_same, cluster_open, cluster_close)
{
    static const char sweep_words[] =
        "sweep tiny.yaml --grid policy=none,most_used seed=1..2 --slurm --partition gpu --time "
        "12:00:00 --memory 16G --cpus 1 --jobs 3 --slurm-arg --account=lab",
                      rows[] = "SELECT policy, seed, after_task, task, correct FROM runs JOIN evaluations USING (run) "
                               "ORDER BY 1, 2, 3, 4";
    const struct workshop *workshop = &((struct cluster *)*state)->workshop;
    struct text alone = {0};
    expect_words(program_ends(workshop, sweep_words, 0),
                 WORDS("4 missing", "3 at a time, 1 thread each", "job 42", "--collect"));
    expect_text(workshop, "runs/sweep-tiny-*/batch.sh",
                WORDS("\n#SBATCH --array=0-3%3\n", "\n#SBATCH --partition=\"gpu\"\n", "\n#SBATCH --time=\"12:00:00\"\n",
                      "\n#SBATCH --mem=\"16G\"\n", "\n#SBATCH --cpus-per-task=1\n", "\n#SBATCH --account=lab\n",
                      "\n#SBATCH --job-name=\"mtil-tiny\"\n", "\n#SBATCH --signal=B:TERM@120\n"));
    expect_text(workshop, "submitted", WORDS("--dependency=afterany:42 ", "/collect.sh\n"));
    expect_text(workshop, "runs/sweep-tiny-*/logs/collect.log", WORDS("4 runs joined into results.db", "most_used"));
    program_succeeds(workshop, "sweep tiny.yaml --grid policy=none,most_used seed=1..2 run.database=alone.db "
                               "run.folder=alone --quiet");
    char *path = workshop_path(workshop, "alone.db");
    rows_query(path, rows, &alone);
    assert_true(alone.size > 100);
    rows_expect(workshop, "results.db", rows, alone.data);
    text_free(&alone);
    free(path);
    expect_words(program_ends(workshop, sweep_words, 0), WORDS("4 finished", "nothing is left to submit"));
    expect_words(program_ends(workshop, "sweep tiny.yaml --grid policy=none,most_used seed=1..2", 0),
                 WORDS("4 finished"));
    assert_int_equal(workshop_leftovers(workshop), 0);
}

/* What has failed is told with its log, and submitted again; what has finished is kept. */
TEST_WITH(failed_jobs_are_told_and_submitted_again, cluster_open, cluster_close)
{
    const struct workshop *workshop = &((struct cluster *)*state)->workshop;
    struct outcome outcome = program_ends(workshop, "sweep tiny.yaml " GRID "--slurm", 0);
    outcome_free(&outcome);
    rows_expect(workshop, "results.db", "SELECT count(*) FROM runs WHERE status = 'finished'", "2\n");
    expect_words(program_ends(workshop, "sweep tiny.yaml " GRID "--collect", 1),
                 WORDS("weights=other.safetensors seed=2 is not finished: ", "there is no file other.safetensors",
                       "logs/3.log", "2 of 4 runs are not finished", "--slurm"));
    workshop_write_other_weights(workshop, "other.safetensors");
    expect_words(program_ends(workshop, "sweep tiny.yaml " GRID "--slurm", 0), WORDS("2 finished"));
    expect_text(workshop, "runs/sweep-tiny-*/batch.sh", WORDS("\n#SBATCH --array=2-3\n"));
    outcome = program_ends(workshop, "sweep tiny.yaml " GRID "--collect", 0);
    assert_non_null(strstr(outcome.out.data, "other.safetensors"));
    outcome_free(&outcome);
    rows_expect(workshop, "results.db", "SELECT count(*) FROM runs WHERE status = 'finished'", "4\n");
}

/* Its folder, its data and its values may have spaces and quotes where a shell would trip. */
TEST_WITH(scripts_are_quoted, cluster_open, cluster_close)
{
    const struct workshop *workshop = &((struct cluster *)*state)->workshop;
    assert_int_equal(symlink("data", scratch_file(&workshop->scratch, "it's(data)")), 0);
    struct outcome outcome = program_ends(
        workshop, "sweep ./tiny.yaml data.root=it's(data) seed=1 run.folder=$HOME;runs run.database=a&b.db --slurm", 0);
    outcome_free(&outcome);
    rows_expect(workshop, "a&b.db", "SELECT status FROM runs", "finished\n");
    program_complains(workshop, &(struct launch){.arguments = "sweep tiny.yaml seed=1 run.folder=100%\"runs --slurm"},
                      WORDS("quotes", "run.folder"));
}

TEST_WITH(refusals_are_told, cluster_open, cluster_close)
{
    static const char plain[] = "sweep tiny.yaml seed=1 --slurm";
    const struct workshop *workshop = &((struct cluster *)*state)->workshop;
    scratch_write_text(&workshop->scratch, "refusal", "sbatch: error: invalid partition specified: gpu\n");
    struct outcome outcome = program_ends(workshop, plain, 1);
    expect_words(outcome, WORDS("sbatch: exit status 1", "invalid partition specified: gpu"));
    assert_int_equal(unlink(scratch_file(&workshop->scratch, "refusal")), 0);
    assert_int_equal(symlink("nowhere", scratch_file(&workshop->scratch, "data2")), 0);
    expect_words(program_ends(workshop, "sweep tiny.yaml data.root=data2 seed=1 --slurm", 0),
                 WORDS("job 42", "no estimate"));
    scratch_write_text(&workshop->scratch, "queue", "42 gpu mtil-tiny PENDING\n");
    expect_words(program_ends(workshop, "sweep tiny.yaml data.root=data2 seed=1 --slurm", 75),
                 WORDS("job 42 of this sweep is in the queue", "scancel 42"));
    assert_int_equal(unlink(scratch_file(&workshop->scratch, "bin/sbatch")), 0);
    setenv("PATH", scratch_file(&workshop->scratch, "bin"), 1);
    expect_words(program_ends(workshop, plain, 1), WORDS("sbatch: there is no such program"));
}

TEST_WITH(mistakes_come_first, cluster_open, cluster_close)
{
    static const struct {
        const char *arguments, *words[3];
    } cases[] = {
        {"sweep tiny.yaml seed=1 --partition gpu", {"--partition", "--slurm"}},
        {"sweep tiny.yaml seed=1 --slurm --collect", {"--slurm or --collect"}},
        {"sweep tiny.yaml seed=1 --slurm --cpus 0", {"cpus", "from 1"}},
        {"sweep tiny.yaml seed=1 --slurm --partition a\"b", {"quotes"}},
        {"sweep tiny.yaml seed=1 --slrm", {"slrm", "slurm"}},
    };
    const struct workshop *workshop = &((struct cluster *)*state)->workshop;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome outcome = program_ends(workshop, cases[i].arguments, 2);
        expect_words(outcome, cases[i].words);
    }
    char *folder = workshop_find(workshop, "runs");
    assert_null(folder);
}

/* A plan with --slurm writes and submits nothing, and collecting needs no cluster. */
TEST_WITH(plans_submit_nothing, cluster_open, cluster_close)
{
    const struct workshop *workshop = &((struct cluster *)*state)->workshop;
    struct outcome outcome = program_ends(workshop, "sweep tiny.yaml seed=1..4 --slurm --dry-run --format csv", 0);
    assert_non_null(strstr(outcome.out.data, "4,0,0,4"));
    expect_words(outcome, WORDS("4 at a time, 1 thread each"));
    expect_words(program_ends(workshop, "sweep tiny.yaml seed=1..4 --collect", 1),
                 WORDS("seed=3 is not finished: it has not begun", "4 of 4"));
    assert_null(workshop_find(workshop, "runs"));
    assert_null(workshop_find(workshop, "submitted"));
    assert_null(workshop_find(workshop, "results.db"));
}
