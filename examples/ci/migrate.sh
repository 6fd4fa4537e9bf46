#!/bin/sh
# Migrates namespaces in a CI job: create, validate, stage, migrate, rollback, each with its exit codes handled.
# GitHub Actions (github-actions.yaml) and GitLab CI (gitlab-ci.yaml) call it; it runs as well by hand.
#
#   PLAN=shop SRC=ctx1 DST=ctx2 NAMESPACES=shop:shop-prod examples/ci/migrate.sh all
#
# STEP is create, validate, stage, migrate, rollback, history, or all: the first four, and what ROLLBACK says.
#
#   PLAN            the plan's name; its file PLAN.yaml is made by create where it is not there
#   SRC, DST        the kubeconfig contexts, for create and for a history without the plan file
#   SRC_KUBECONFIG, DST_KUBECONFIG, NAMESPACES, STORAGE_LOCATION   for create; empty: mig's defaults
#   ROLLBACK        when all and migrate take everything back: never, on-failure (the default), always
#   MAX_DOWNTIME    how long the source may be down before it comes up again; empty: as the plan says
#   WAIT            how long to queue behind another run (default 30m)
#   OUT             the directory for the log, the test results and the summary (default mig-results)
#   FORMAT          markdown (the default): a summary for the job's page; json: a line for whatever happens, in OUT/COMMAND.jsonl
#   SUMMARY         the file that the markdown is appended to (default OUT/summary.md)
#   LOG_GROUPS      github or gitlab: fold the log; empty: do not
#   MIG             the program (default mig)
#
# It exits with mig's codes (mig help exit-codes); a migration that was taken back has failed all the same.
set -eu

MIG=${MIG:-mig}
PLAN=${PLAN:?name the plan: PLAN=shop}
ROLLBACK=${ROLLBACK:-on-failure}
WAIT=${WAIT:-30m}
OUT=${OUT:-mig-results}
FORMAT=${FORMAT:-markdown}
SUMMARY=${SUMMARY:-$OUT/summary.md}

mkdir -p "$OUT"
# mig reads these of its settings from the environment.
export MIG_LOG_FILE="$OUT/mig.log" MIG_LOG_GROUPS="${LOG_GROUPS:-}"

say() { echo "migrate.sh: $*" >&2; }

create() {
    if [ -f "$PLAN.yaml" ]; then
        say "$PLAN.yaml is there and is taken as it is"
        return 0
    fi
    set -- plan create "$PLAN" --src "${SRC:?name the source: SRC=ctx1}" --dst "${DST:?name the destination: DST=ctx2}"
    [ -z "${SRC_KUBECONFIG:-}" ] || set -- "$@" --src-kubeconfig "$SRC_KUBECONFIG"
    [ -z "${DST_KUBECONFIG:-}" ] || set -- "$@" --dst-kubeconfig "$DST_KUBECONFIG"
    [ -z "${NAMESPACES:-}" ] || set -- "$@" --namespaces "$NAMESPACES"
    [ -z "${STORAGE_LOCATION:-}" ] || set -- "$@" --storage-location "$STORAGE_LOCATION"
    "$MIG" "$@"
}

validate() {
    code=0
    "$MIG" plan validate "$PLAN" || code=$?
    case $code in
    0) ;;
    2) say "the plan has mistakes: edit $PLAN.yaml" ;;
    4) say "credentials or rights are missing: mig cluster check CONTEXT --print-role prints what to grant" ;;
    10) say "the plan is not ready: settle what is told above, or accept it in the plan" ;;
    esac
    return "$code"
}

# run runs a command that tells a summary, test results and a log.
run() {
    command=$1
    shift
    told=$SUMMARY
    [ "$FORMAT" != json ] || told=$OUT/$command.jsonl
    code=0
    "$MIG" "$command" "$PLAN" --wait="$WAIT" -o "$FORMAT" --junit "$OUT/$command.xml" "$@" >>"$told" || code=$?
    case $code in
    0) ;;
    3) say "$command finished, but something was left out: each is named in $told" ;;
    11) say "another run has held the plan or a namespace for all of $WAIT" ;;
    130) say "interrupted: the same command goes on where it was" ;;
    *) say "$command ended with exit code $code" ;;
    esac
    return "$code"
}

# An application that could not be staged can still be cut over, only with more to copy; what blocks the one blocks the other.
stage() { run stage; }

migrate() {
    set --
    [ -z "${MAX_DOWNTIME:-}" ] || set -- "$@" --max-downtime "$MAX_DOWNTIME"
    ended=0 # not code: a rollback has one of its own
    run migrate "$@" || ended=$?
    case $ended in
    # Done; or done but for what is named, and running on the destination: a person decides whether that is enough.
    # Locked: nothing of ours has begun. Interrupted: the next job goes on.
    0 | 3 | 11 | 130) ;;
    # Refused before anything began, as wrong or without rights: there is nothing to take back.
    2 | 4) ;;
    *) if [ "$ROLLBACK" != never ]; then rollback || say "the rollback did not end well either: run it again"; fi ;;
    esac
    return "$ended"
}

rollback() { run rollback --yes; }

history() {
    if [ -f "$PLAN.yaml" ]; then
        "$MIG" history "$PLAN" last "$@"
    else # the clusters know
        "$MIG" history "$PLAN" last --src "${SRC:?}" --dst "${DST:?}" "$@"
    fi
}

all() {
    create
    validate
    stage
    migrate
    if [ "$ROLLBACK" = always ]; then rollback; fi
}

case ${1:-} in
create | validate | stage | migrate | rollback | history | all)
    step=$1
    shift
    "$step" "$@"
    ;;
*)
    sed -n '2,/^set -eu/{/^#/s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
    ;;
esac
