#!/bin/bash
# mtil sweep --slurm on a real Slurm: jobs compute the same rows as a sweep on this machine, what was stopped goes on, what
# fails is told. Three minutes. Exit status 77, and why, where no Slurm can be started.
#   test_cluster.sh PROGRAM
set -euo pipefail
program=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cluster/slurm.sh
. "$here/slurm.sh"

work=$(mktemp -d "${TMPDIR:-/tmp}/mtil-cluster-XXXXXX")
chmod 755 "$work" # munged insists that everybody can reach its socket
trap 'slurm_stop; rm -rf "$work"' EXIT

step() {
    printf '== %s (%d s)\n' "$1" "$SECONDS"
}

skip() {
    printf 'skipped: %s\n' "$1" >&2
    exit 77
}

fail() {
    printf 'failed: %s\n' "$1" >&2
    tail -n 5 "$work"/runs/sweep-*/logs/*.log "$work"/cluster/slurm*.log >&2 || true
    exit 1
}

# expect WORDS FILE: the words are in the file.
expect() {
    grep -qF -- "$1" "$2" || { cat "$2" >&2; fail "expected \"$1\""; }
}

# wait_for_jobs: until the queue is empty.
wait_for_jobs() {
    for _ in $(seq 600); do
        [ -n "$(squeue --noheader)" ] || return 0
        sleep 0.5
    done
    squeue >&2
    fail "the jobs have not ended after five minutes"
}

# rows DATABASE: everything that was computed, whatever the order in which runs came there.
rows() {
    local tables=("evaluations USING (run)" "evaluations USING (run) JOIN per_image USING (run, task, after_task)"
        "steps USING (run)" "expert_counts USING (run)" "expert_events USING (run)" "router_choices USING (run)"
        "selector_thresholds USING (run)")
    local columns=("after_task, task, correct, images" "after_task, task, kind, hex(data)"
        "task, iteration, loss, learning_rate" "task, encoder, block, expert, count"
        "task, iteration, encoder, block, position, event, target, t1, t2, reason" "after_task, task, router, count"
        "task, threshold")
    local i
    for i in "${!tables[@]}"; do
        "$program" query "$1" "SELECT policy, seed, ${columns[i]} FROM runs JOIN ${tables[i]}" \
            --format csv | LC_ALL=C sort
    done
}

cd "$work"
slurm_install || skip "slurm-wlm and munge are not there and cannot be installed"
mkdir cluster
step "a cluster of this machine"
slurm_start "$work/cluster" || skip "Slurm does not start here"
"$program" data mini data --quiet

grid=("policy=none,most_used" seed=1..2 data.root=data "data.order=mnist dtd eurosat" training.iterations=12
    training.batch=4 merge.every=4)
step "the sweep on this machine"
"$program" sweep mini --grid "${grid[@]}" run.folder=local run.database=local.db >local.txt 2>local.log

step "the same as jobs"
"$program" sweep mini --grid "${grid[@]}" run.database=cluster.db --slurm --partition all --cpus 1 --time 10 --jobs 2 \
    --slurm-arg "--nice=0 --comment=test" 2>submit.log
expect "4 missing" submit.log
"$program" sweep mini --grid "${grid[@]}" run.database=cluster.db --slurm 2>again.log && fail "submitted twice"
expect "in the queue" again.log
wait_for_jobs
expect "4 runs joined into cluster.db" runs/sweep-*/logs/collect.log
rows local.db >local.rows
rows cluster.db >cluster.rows
[ "$(wc -l <local.rows)" -gt 100 ] || fail "expected more than 100 rows, found $(wc -l <local.rows)"
cmp local.rows cluster.rows || fail "the rows differ"
"$program" sweep mini --grid "${grid[@]}" run.database=cluster.db --collect >cluster.txt
cmp local.txt cluster.txt || fail "the tables differ"
"$program" sweep mini --grid "${grid[@]}" run.database=cluster.db --slurm 2>nothing.log
expect "nothing is left to submit" nothing.log

step "a run that fails, one that is stopped and goes on"
rm -rf runs
long=("weights=missing.safetensors,mini" data.root=data "data.order=mnist dtd" training.iterations=4000 training.batch=4
    run.database=long.db)
"$program" sweep mini --grid "${long[@]}" --slurm --cpus 1 2>submit.log
for _ in $(seq 600); do
    ls runs/sweep-*/runs/*/seed1/resume.safetensors >/dev/null 2>&1 && break
    sleep 0.2
done
scancel --batch --signal=TERM "$(cat runs/sweep-*/job)_1"
wait_for_jobs
"$program" sweep mini --grid "${long[@]}" --collect 2>unfinished.log && fail "nothing was told of runs that are not finished"
expect "weights=missing.safetensors seed=1 is not finished: mtil: error:" unfinished.log
expect "weights=mini seed=1 is not finished: mtil: the same command resumes the run: mnist: stopped after" unfinished.log
expect "2 of 2 runs are not finished" unfinished.log
"$program" sweep mini --grid "${long[@]}" --slurm --cpus 1 2>submit.log
expect "1 to resume" submit.log
for _ in $(seq 600); do
    grep -q "resuming task" runs/sweep-*/logs/1.log && break
    sleep 0.2
done
expect "resuming task" runs/sweep-*/logs/1.log
step "all passed"
