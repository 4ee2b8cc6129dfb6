#!/usr/bin/env bash
# Recipes on a borrowed GPU: see docs/gpu.md.
#   recipes/gpu.sh pack DATA...                  here: data/DATA/prepared and its test texts into parcels/DATA.tar.xz
#   recipes/gpu.sh run OUT MINUTES RECIPE...     there: trains the recipes one after the other within MINUTES in all,
#                                                evaluates each, and leaves in OUT what must come back
#   recipes/gpu.sh collect OUT NAME FOLDER       here again: what came back of recipe NAME as a model folder
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
python=${PYTHON:-python3}
shard_bytes=$((15 * 1024 * 1024)) # what comes back travels in files of at most 16 MiB
sentences=${SENTENCES:-1000}      # of the valid split, to evaluate on
bits=${BITS:-8}                   # of a weight on its way back: 8, or 16 for bfloat16

pack() {
    mkdir -p parcels
    for data; do
        find "data/$data" -maxdepth 1 -name '*.txt' ! -name 'train*' -print0 |
            tar c --null --files-from - "data/$data/prepared" | xz -2 -T0 >"parcels/$data.tar.xz.partial"
        mv "parcels/$data.tar.xz.partial" "parcels/$data.tar.xz"
        ls -l "parcels/$data.tar.xz"
    done
}

run() {
    local out=$1 minutes=$2 share
    shift 2
    share=$("$python" -c "print($minutes / $#)")
    mkdir -p "$out"
    for parcel in parcels/*.tar.xz; do
        [ -d "data/$(basename "$parcel" .tar.xz)/prepared" ] || tar xJf "$parcel"
    done
    for recipe; do one "$out" "$share" "$recipe"; done
}

one() { # a killed run is continued: give the same arguments again
    local out=$1 share=$2 recipe=$3 name data
    name=$(basename "$recipe" .toml)
    data=$("$python" -c "import tomllib; print(tomllib.load(open('$recipe', 'rb'))['data']['folder'])")
    "$python" -m insnet train "$recipe" --resume --output "runs/$name" \
        --set train.minutes="$share" --set train.updates=100000000 --set train.patience=0 2>&1 | tee -i -a "$out/$name.log"
    weights "$out" "$name"
    "$python" -m insnet evaluate "runs/$name" --data "$data" --split valid --limit "$sentences" --output "runs/$name/valid"
    cp "runs/$name"/{tokenizer,tokenizer_config,generation_config}.json "runs/$name"/{recipe.toml,metrics.jsonl} \
        "runs/$name/README.md" "runs/$name"/valid/report.* "runs/$name/small"
    tar cJf "$out/$name.tar.xz" -C "runs/$name/small" --exclude '*.safetensors' .
}

collect() {
    local out=$1 name=$2 folder=$3 shard
    mkdir -p "$folder"
    tar xJf "$out/$name.tar.xz" -C "$folder"
    for shard in "$out/$name".*safetensors; do cp "$shard" "$folder/$(basename "${shard#"$out/$name."}")"; done
}

weights() { # in few bits and shards, as insnet.load reads them
    "$python" - "$1" "$2" "$shard_bytes" "$bits" <<'PYTHON'
import shutil
import sys
from pathlib import Path

import torch

from insnet.families.storage import load_model, save_model

out, name, shard_bytes, bits = sys.argv[1:]
how = {"8": {"eight_bits": True}, "16": {"dtype": torch.bfloat16}}[bits]
save_model(f"runs/{name}/small", load_model(f"runs/{name}", "cpu"), max_shard_bytes=int(shard_bytes), **how)
for path in Path(f"runs/{name}/small").glob("*.safetensors"):
    shutil.copyfile(path, Path(out) / f"{name}.{path.name}")
PYTHON
}

case "${1:-}" in
    pack | run | collect) "$@" ;;
    *) sed -n '2,6s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
