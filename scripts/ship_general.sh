#!/usr/bin/env bash
# From a trained run to the model that ships, with its figures and pages; see docs/gpu.md. Commit after each.
#   scripts/ship_general.sh measure RUN    results files: stopping rules, losses in few bits, quality, insertion order
#   scripts/ship_general.sh curves RUN...  learning curves of the runs that led to it, as NAME_training.json and drawings
#   scripts/ship_general.sh pack RUN       the model on the shelf, its card filled from them
#   scripts/ship_general.sh pages [TAU=RUN...]  what README and docs show of it, fine-tuning included; beside it models
#                                          of other tolerances (general_layered.toml with --set objective.tau=[TAU])
# Each starts from a clean checkout with the data of `scripts/make_data.py` and `insnet prepare recipes/general.toml`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH=src
python=${PYTHON:-.venv/bin/python}
results=benchmarks/results
insnet() { "$python" -m insnet "$@"; }

measure() { # the model as it will ship, from an ignored folder: results files then carry a clean commit
    local run=$1 packed=runs/shelf/general
    "$python" -m benchmarks.stopping "$run" --data data/tune --untruncated data/general --limit 400 --quantiles 0.5,0.55,0.6,0.65,0.7 \
        --output $results/stopping_rules.json
    "$python" -m scripts.pack_general "$run" $packed $results/stopping_rules.json
    "$python" -m benchmarks.losses "$run" --rounded --output $results/int8_general.json
    insnet evaluate $packed --data data/wikipedia --split valid --judge --result $results/quality_wikipedia.json
    "$python" -m benchmarks.insertion_order $packed --order random_words --data data/wikipedia --text data/general/train.txt \
        --output $results/insertion_order.json
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
    "$python" -m scripts.pack_general "$1" src/insnet/models/general \
        $results/{stopping_rules,int8_general,quality_wikipedia}.json
}

pages() {
    "$python" -m scripts.write_finetune
    "$python" -m scripts.write_samples "${@/#/--tau=}"
    "$python" -m scripts.write_console
}

case "${1:-} $#" in
    'measure 2' | 'pack 2' | 'pages '[1-9] | 'curves '[2-9]) "$@" ;;
    *) sed -n '3,7s/^# *//p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
