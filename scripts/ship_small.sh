#!/usr/bin/env bash
# From a trained run to the model that ships, with its figures and pages; see docs/gpu.md. Commit after each.
#   scripts/ship_small.sh measure RUN    results files: stopping rules, losses in few bits, quality, fresh keyword lists
#   scripts/ship_small.sh curves RUN...  learning curves of the runs that led to it, as NAME_training.json and drawings
#   scripts/ship_small.sh pack RUN       the model on the shelf, its card filled from them
#   scripts/ship_small.sh pages [TAU=RUN...]  what README and docs show of the model that is the default, fine-tuning included;
#                                        beside it models of other tolerances (--set objective.tau=[TAU])
# Each starts from a clean checkout with the texts that it has learned from in data/distilled, prepared for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH=src
python=${PYTHON:-.venv/bin/python}
results=benchmarks/results
insnet() { "$python" -m insnet "$@"; }

measure() { # the model as it will ship, from an ignored folder: results files then carry a clean commit
    local run=$1 packed=runs/shelf/small
    "$python" -m benchmarks.stopping "$run" --data data/distilled --limit 400 --quantiles 0.45,0.5,0.55,0.6,0.65 \
        --output $results/stopping_small.json
    "$python" -m scripts.pack_small "$run" $packed $results/stopping_small.json
    "$python" -m benchmarks.losses "$run" --rounded --output $results/int8_small.json
    insnet evaluate $packed --data data/distilled --split valid --limit 1000 --judge --result $results/quality_small.json
    "$python" -m benchmarks.fresh_lists $packed --lists benchmarks/lists/fresh.txt --output $results/lists_small.json
}

curves() {
    local run name
    for run; do
        name=$(basename "$run")
        "$python" -m benchmarks.learning_curve "$run" --plot "docs/figures/${name}_learning_curve.svg" \
            --output "$results/${name}_training.json"
    done
}

pack() {
    "$python" -m scripts.pack_small "$1" src/insnet/models/small $results/{stopping,int8,quality,lists}_small.json
}

pages() {
    "$python" -m scripts.write_finetune
    "$python" -m scripts.write_samples "${@/#/--tau=}"
    "$python" -m scripts.write_console
}

case "${1:-} $#" in
    'measure 2' | 'pack 2' | 'pages '[1-9] | 'curves '[2-9]) "$@" ;;
    *) sed -n '3,8s/^# *//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
