# shellcheck shell=bash
# A Slurm cluster of one node, this machine, for as long as a script lives. Sourced by test_cluster.sh.
#
#   slurm_install                what is missing of Debian's packages
#   slurm_start FOLDER           munged, slurmctld and slurmd on configurations in FOLDER; exports SLURM_CONF
#   slurm_stop                   ends them
#
# Nothing of an installed Slurm is touched: ports, keys, sockets and states are its own. Neither systemd nor control groups
# are needed, so it runs in a container; whoever starts it, root or not, is the cluster's user.

PATH=$PATH:/usr/sbin:/sbin
slurm_daemons=()

slurm_install() {
    local program missing=""
    for program in munged slurmctld slurmd sbatch squeue scancel; do
        command -v "$program" >/dev/null || missing="$missing $program"
    done
    [ -n "$missing" ] || return 0
    echo "Installing slurm-wlm and munge: there is no$missing"
    local sudo=""
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends slurm-wlm munge ||
        { $sudo apt-get update &&
            $sudo env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends slurm-wlm munge; }
}

# slurm_configure FOLDER: linuxproc finds a job's processes by their parents, task/none leaves them where they are, so that
# no control group is asked for; config_overrides takes the node as it is described here.
slurm_configure() {
    local node port
    node=$(hostname -s)
    port=$((20000 + RANDOM % 20000))
    cat >"$1/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$1/munge.socket
CredType=cred/munge
StateSaveLocation=$1/state
SlurmdSpoolDir=$1/spool
SlurmctldPidFile=$1/slurmctld.pid
SlurmdPidFile=$1/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=30
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}

slurm_start() {
    mkdir "$1/state" "$1/spool" "$1/munge"
    chmod 755 "$1"
    chmod 700 "$1/munge"
    (umask 077 && head -c 1024 /dev/urandom >"$1/munge/key")
    slurm_configure "$1"
    export SLURM_CONF=$1/slurm.conf
    munged --foreground --key-file="$1/munge/key" --socket="$1/munge.socket" --pid-file="$1/munge/pid" \
        --seed-file="$1/munge/seed" 2>"$1/munged.log" &
    slurm_daemons+=($!)
    until [ -S "$1/munge.socket" ]; do
        kill -0 "${slurm_daemons[0]}" 2>/dev/null || { cat "$1/munged.log" >&2; return 1; }
        sleep 0.1
    done
    slurmctld -D -i >"$1/slurmctld.log" 2>&1 &
    slurm_daemons+=($!)
    slurmd -D >"$1/slurmd.log" 2>&1 &
    slurm_daemons+=($!)
    for _ in $(seq 300); do
        [ "$(sinfo --noheader --format=%t 2>/dev/null)" != idle ] || return 0
        sleep 0.2
    done
    echo "the node is not idle after a minute:" >&2
    tail -n 20 "$1/slurmctld.log" "$1/slurmd.log" >&2
    return 1
}

slurm_stop() {
    local i
    [ ${#slurm_daemons[@]} -gt 0 ] || return 0
    scancel --me 2>/dev/null || true
    for ((i = ${#slurm_daemons[@]} - 1; i >= 0; i--)); do
        kill "${slurm_daemons[i]}" 2>/dev/null || true
        wait "${slurm_daemons[i]}" 2>/dev/null || true
    done
    slurm_daemons=()
}
