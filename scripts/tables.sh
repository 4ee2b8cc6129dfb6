#!/usr/bin/env bash
# The paper's main table for Yelp and News, on a GPU that is lent for ten minutes at a time: see docs/gpu.md, reproduction.md.
#   scripts/tables.sh learn OUT SECONDS   there: models of both sets, then of each, as far as SECONDS go; again to go on
#   scripts/tables.sh draw OUT SPLIT      there, from models in runs/: all texts, three seeds, into OUT/kept.tar.xz
#   scripts/tables.sh measure SPLIT       here, with the same models and what was kept in runs/kept: results files, judged
#   scripts/tables.sh rival OUT           there: Plan-and-Write alone, trained; what it writes of valid with many settings
#   scripts/tables.sh beside OUT          there, after rival: what it writes of test, beside results files of ours
#   scripts/tables.sh base OUT            there: the paper's size, trained and measured
#   scripts/tables.sh spectrum OUT        there, from models in runs/: one for each tolerance, trained and measured
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
python=${PYTHON:-python3}
both=${BOTH:-6.7}           # minutes of a model of both sets, ours and Plan-and-Write's,
each=${EACH:-6.9}           # of one set, two models at a time: Plan-and-Write, which learns by heart at once, stops after
last=${LAST:-1.1}           # so many,
stop=${STOP:-1.5}           # and of a binary stop head, with which ours is decoded as in the paper, one at a time;
base=${BASE:-6.0}           # at the paper's size, of both sets,
base_each=${BASE_EACH:-3.0} # and of each, both at a time; and
tau=${TAU:-0.8}             # of a tolerance, all at a time
start=${START:-layered}     # what the tolerances start from: SET_$start
sets=${SETS:-yelp news}
seeds=${SEEDS:-0 1 2}
batch=${BATCH:-1536}        # texts at a time; six processes of so many fill 140 GB
change=${CHANGE:-}          # what all recipes have changed, as in "train.compile=false"
more=${MORE:-}              # further options of the benchmarks

# Chosen by what was tried on valid, near the best of it (docs/lab-notebook.md).
of_16="candidates=16 candidate_choice=consensus"
of_32="candidates=32 candidate_choice=consensus"
yelp_one_by_one="$of_32 count_quantile=0.47 temperature=1.41 final_temperature=0.5 repetition_penalty=1.4"
yelp_parallel="parallel_mass=0.76 $of_16 count_quantile=0.505 temperature=1.06 repetition_penalty=1.3 revise=1 revise_share=0.25"
yelp_plan_and_write="$of_32 count_quantile=0.18 temperature=0.93 repetition_penalty=1.2"
news_one_by_one="$of_16 count_quantile=0.64 temperature=1.3 final_temperature=0.4 revise=1 revise_share=0.2"
news_parallel="parallel_mass=0.81 $of_16 count_quantile=0.64 temperature=0.84 revise=1 revise_share=0.2"
news_plan_and_write="$of_16 count_quantile=0.34 temperature=0.7 repetition_penalty=1.2"
yelp_plan_and_write=${YELP_PLAN_AND_WRITE:-$yelp_plan_and_write} # once chosen on valid
news_plan_and_write=${NEWS_PLAN_AND_WRITE:-$news_plan_and_write}
yelp_tries=("$of_32 count_quantile=0.14/0.18/0.22 temperature=0.93 repetition_penalty=1.2"
    "$of_32 count_quantile=0.18 temperature=0.85/1.0 repetition_penalty=1.2"
    "$of_32 count_quantile=0.18 temperature=0.85/0.93/1.0 repetition_penalty=1.4"
    "$of_32 count_quantile=0.18 temperature=0.93"
    "$of_32 count_quantile=0.18 temperature=1.1 final_temperature=0.7 repetition_penalty=1.2"
    "$of_32 count_quantile=0.18 temperature=1.0 min_p=0.02 repetition_penalty=1.2")
news_tries=("$of_16 count_quantile=0.3/0.34/0.38 temperature=0.77"
    "$of_16 count_quantile=0.34 temperature=0.7/0.84/0.92"
    "$of_16 count_quantile=0.34 temperature=0.7/0.77/0.84 repetition_penalty=1.2"
    "$of_16 count_quantile=0.34 temperature=1.0 final_temperature=0.5"
    "$of_16 count_quantile=0.34 temperature=0.95 min_p=0.02")
tried=${TRIED:-250}                 # texts of valid
base_settings="stopping=rehearsed rehearsals=3" # the paper's but for the end, beside the paper's own

learn() {
    local out=$1 ends=$((SECONDS + $2)) set
    export WEIGHTS=none EVALUATE=none
    step() { # OUT MINUTES JOB...
        timeout -s INT $((ends > SECONDS ? ends - SECONDS : 1)) scripts/gpu.sh run "$@" # 0 would be no limit
    }
    step "$out/both" "$both" "recipes/both_layered.toml $change" "recipes/both_plan_and_write.toml $change"
    for set in $sets; do
        step "$out/$set" "$each" "recipes/${set}_layered.toml@both_layered $change" \
            "recipes/${set}_plan_and_write.toml@both_plan_and_write:$last $change" &
        processes+=($!)
    done
    wait_for_all
    for set in $sets; do step "$out/${set}_stop" "$stop" "recipes/${set}_threshold.toml@${set}_layered $change"; done
}

processes=()
wait_for_all() { # and fail if one of them did
    local process failed=
    for process in "${processes[@]}"; do wait "$process" || failed=yes; done
    processes=()
    [ -z "$failed" ]
}

quality() { # SET SPLIT SEEDS OPTION...; beside ours, those of the other two models that there are
    local one_by_one=$1_one_by_one plan_and_write=$1_plan_and_write others=()
    [ ! -d "runs/$1_threshold" ] || others+=(--faithful "runs/$1_threshold")
    [ ! -d "runs/$1_plan_and_write" ] || others+=(--baseline "runs/$1_plan_and_write" --baseline-settings "${!plan_and_write}")
    "$python" -m benchmarks.quality "runs/$1_layered" --settings "${!one_by_one}" "${others[@]}" \
        --data "data/$1" --split "$2" --seeds "$3" --batch-size "$batch" --keep runs/kept $more "${@:4}"
}

dinic() { # SET SPLIT SEEDS OPTION...
    local one_by_one=$1_one_by_one parallel=$1_parallel
    "$python" -m benchmarks.dinic "runs/$1_layered" "runs/$1_layered" --settings "${!parallel}" \
        --sequential-settings "${!one_by_one}" --data "data/$1" --split "$2" --seeds "$3" --batch-size "$batch" --keep runs/kept $more "${@:4}"
}

draw() { # a seed's sequential texts are found by the second command
    local out=$1 split=$2 set seed
    export OMP_NUM_THREADS=1 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True # six processes share cores and memory
    mkdir -p "$out" runs/kept
    for seed in $seeds; do
        for set in $sets; do
            (quality $set "$split" "$seed" && dinic $set "$split" "$seed" --texts 1 --rounds 1 --warmup 0) \
                >"runs/kept/$set-$seed.log" 2>&1 &
            processes+=($!)
        done
    done
    local failed=
    wait_for_all || failed=yes
    tar cJf "$out/kept.tar.xz" runs/kept # what there is, in any case
    [ -z "$failed" ] || { echo "error: not all texts were drawn: see runs/kept/*.log; draw again to go on" >&2 && exit 1; }
}

rival() { # a process for each line of tries
    local out=$1 set line lines
    train "$out" "$both" "recipes/both_plan_and_write.toml $change"
    train_each "$out" "$last" recipes/SET_plan_and_write.toml@both_plan_and_write
    for set in $sets; do
        lines=${set}_tries[@]
        for line in "${!lines}"; do
            try "$set" "$line" >/dev/null &
            processes+=($!)
        done
    done
    wait_for_all
    for set in $sets; do
        lines=${set}_tries[@]
        output="benchmarks/results/settings_plan_and_write_$set.json" try "$set" "${!lines}"
    done
    tar cJf "$out/results.tar.xz" benchmarks/results/settings_plan_and_write_*
}

try() { # SET LINE...: on valid
    local set=$1 line options=(--limit "$tried" --batch-size "$batch" --keep runs/kept ${output:+--output "$output"})
    for line in "${@:2}"; do options+=(--try "$line"); done
    benchmark settings "runs/${set}_plan_and_write" --data "data/$set" "${options[@]}"
}

beside() {
    local out=$1 set settings
    mkdir -p "$out"
    for set in $sets; do
        settings=${set}_plan_and_write
        texts "$set" "runs/${set}_plan_and_write" "${!settings}"
    done
    wait_for_all
    for set in $sets; do
        settings=${set}_plan_and_write
        benchmark baseline "benchmarks/results/quality_$set.json" "runs/${set}_plan_and_write" --settings "${!settings}" \
            --data "data/$set" --batch-size "$batch" --keep runs/kept
    done
    tar cJf "$out/results.tar.xz" benchmarks/results/quality_*
}

base() {
    local out=$1 set
    train "$out" "$base" "recipes/both_base.toml $change"
    train_each "$out" "$base_each" recipes/SET_base.toml@both_base
    for set in $sets; do texts "$set" "runs/${set}_base" "$base_settings"; done
    wait_for_all
    for set in $sets; do
        benchmark quality "runs/${set}_base" --settings "$base_settings" --data "data/$set" --split test --seeds "${seeds// /,}" \
            --batch-size "$batch" --keep runs/kept $more --output "benchmarks/results/base_$set.json"
    done
    tar cJf "$out/results.tar.xz" benchmarks/results/base_*
}

spectrum() { # what compiling would take is longer than these few updates
    local out=$1 set name
    local ways=(--settings parallel_mass=0.5/0.7/0.9 --settings uniform)
    declare -A tau_of=([3]=3.0 [1]=1.0 [03]=0.3 [none]=-inf)
    for set in $sets; do
        for name in "${!tau_of[@]}"; do
            train "$out/$name" "$tau" "${set}_tau$name=recipes/${set}_$start.toml@${set}_$start objective.tau=[${tau_of[$name]}] \
                train.learning_rate=1e-3 train.warmup_updates=10 train.compile=false train.token_budget=16384 $change" &
            processes+=($!)
        done
        wait_for_all
        local models=(--tau "10=runs/${set}_$start" --tau "3=runs/${set}_tau3" --tau "1=runs/${set}_tau1"
            --tau "0.3=runs/${set}_tau03" --tau "-inf=runs/${set}_taunone")
        local how=(--data "data/$set" --split test --batch-size "$batch" --keep runs/kept $more)
        for seed in $seeds; do
            benchmark spectrum "runs/${set}_$start" "${ways[@]}" "${how[@]}" --seeds "$seed" >/dev/null &
            processes+=($!)
            benchmark spectrum "${models[@]}" "${how[@]}" --seeds "$seed" >/dev/null &
            processes+=($!)
        done
        wait_for_all
        benchmark spectrum "runs/${set}_$start" "${ways[@]}" "${models[@]}" "${how[@]}" --seeds "${seeds// /,}" --paper "$set" \
            --plot "docs/figures/spectrum_$set.svg" --output "benchmarks/results/spectrum_$set.json"
    done
    tar cJf "$out/results.tar.xz" benchmarks/results/spectrum_* docs/figures/spectrum_*
}

train() { # OUT MINUTES JOB...
    WEIGHTS=none EVALUATE=none scripts/gpu.sh run "$@"
}

train_each() { # OUT MINUTES JOB: on every SET, all at a time
    local set
    for set in $sets; do
        train "$1/$set" "$2" "${3//SET/$set} $change" &
        processes+=($!)
    done
    wait_for_all
}

benchmark() { # NAME OPTION...; several at a time share cores and memory, and with MPS give way to what learns
    OMP_NUM_THREADS=1 CUDA_MPS_CLIENT_PRIORITY=1 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "$python" -m "benchmarks.$1" "${@:2}"
}

texts() { # SET MODEL SETTINGS: on test, a process for each seed, to be found in runs/kept
    local seed
    for seed in $seeds; do
        benchmark quality "$2" --settings "$3" --data "data/$1" --split test --seeds "$seed" --batch-size "$batch" \
            --keep runs/kept $more >/dev/null &
        processes+=($!)
    done
}

measure() {
    local set all=${seeds// /,}
    for set in $sets; do
        quality $set "$1" "$all" --judge --output "benchmarks/results/quality_$set.json"
        dinic $set "$1" "$all" --texts 4 --judge --output "benchmarks/results/dinic_$set.json"
    done
}

case "${1:-}" in
    learn | draw | measure | rival | beside | base | spectrum) "$@" ;;
    *) sed -n '2,9s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
