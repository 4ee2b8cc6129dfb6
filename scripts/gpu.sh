#!/usr/bin/env bash
# Recipes on a borrowed GPU: see docs/gpu.md.
#   scripts/gpu.sh pack DATA|runs/NAME...   here: what training and evaluating on data/DATA need, its test texts apart, or
#                                           a model to start from, into parcels/
#   scripts/gpu.sh split WHEEL              here: a base's wheel as parcels that travel in two commands
#   scripts/gpu.sh base [OPTION...]         there: runs/base, made of that wheel by insnet retrofit
#   scripts/gpu.sh run OUT MINUTES JOB...   there: trains the jobs one after the other, MINUTES each, evaluates each, and
#                                           leaves in OUT what must come back; a JOB is one word to the shell,
#                                           "[NAME=]RECIPE[@MODEL][:MINUTES] [TABLE.KEY=VALUE...]"
#   scripts/gpu.sh write OUT MINUTES MODEL [OPTION...]  there: texts by MODEL for data/distilled/lists.txt, filtered and
#                                           prepared for recipes/small.toml; OPTIONs are those of make_distilled write
#   scripts/gpu.sh bring OUT NAME...        there: the weights of these runs into OUT
#   scripts/gpu.sh collect OUT NAME FOLDER  here again: what came back of run NAME, as a model folder if its weights did
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH=src PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
python=${PYTHON:-python3}
most_files=8                     # that come back, each of
part_bytes=$((16 * 1024 * 1024)) # at most this many bytes, and together
most_bytes=$((64 * 1024 * 1024)) # no more than these
wheel_bytes=$((55 * 1024 * 1024)) # of a wheel travel at a time
bits=${BITS:-8}                 # of a weight on its way back: 8, or 16 for bfloat16
writers=${WRITERS:-3}           # processes that write texts: while one computes, another reads what it has written
weights=${WEIGHTS:-all}         # which runs' weights come back: all, none, or their names
evaluate=${EVALUATE:---limit 1000 --batch-size 256} # options of `insnet evaluate`, or none

pack() {
    local what
    mkdir -p parcels
    for what; do
        if [[ $what == runs/* ]]; then
            parcel "$(basename "$what").model" --exclude checkpoints --exclude tensorboard --exclude small "$what"
        else
            parcel "$what" $(find "data/$what" -maxdepth 1 \( -name prepared -o -name 'valid*.txt' -o -name lists.txt \))
            if compgen -G "data/$what/test*.txt" >/dev/null; then parcel "$what.test" "data/$what"/test*.txt; fi
        fi
    done
}

parcel() { # NAME, and what tar is to pack; dot files are what somebody left half done
    local file=parcels/$1.tar.xz
    tar c --exclude '.*' "${@:2}" | xz -2 -T0 >"$file.partial"
    mv "$file.partial" "$file"
    ls -l "$file"
}

split_wheel() { # WHEEL
    mkdir -p parcels
    rm -f parcels/*.whl.*
    split -b $wheel_bytes -d "$1" "parcels/$(basename "$1")."
    ls -l parcels/*.whl.*
}

base() {
    local wheels=(parcels/*.whl.00) wheel
    [ ! -f runs/base/config.json ] || return 0
    wheel=runs/$(basename "${wheels[0]}" .00)
    mkdir -p runs
    cat "parcels/$(basename "$wheel")".* >"$wheel"
    "$python" -m insnet retrofit "$wheel" --output runs/base "$@"
}

unpack() { # each parcel once, and again if it has changed
    local parcel stamp
    mkdir -p runs/.parcels
    exec {lock}>runs/.parcels/.lock
    flock "$lock" # one command at a time
    for parcel in parcels/*.tar.xz; do
        stamp=runs/.parcels/$(basename "$parcel")
        if [ -e "$parcel" ] && ! cmp -s "$stamp" <(cksum <"$parcel"); then
            tar xJf "$parcel"
            cksum <"$parcel" >"$stamp"
        fi
    done
    exec {lock}>&-
}

write() { # what is written already is not written again: give the same command to go on
    local out=$1 minutes=$2 number process processes=() status
    shift 2
    mkdir -p "$out"
    unpack
    for number in $(seq "$writers"); do
        timeout "${minutes}m" "$python" -m scripts.make_distilled write "$1" data/distilled/lists.txt --output runs/distilled \
            --part "$number/$writers" "${@:2}" &
        processes+=($!)
    done
    for process in "${processes[@]}"; do
        status=0 && wait "$process" || status=$?
        [ $status -eq 0 ] || [ $status -eq $timed_out ] || fail "a process that writes texts ended with $status"
    done
    "$python" -m scripts.make_distilled gather runs/distilled --output data/distilled | tee "$out/gathered.txt"
    tar c data/distilled/{train,valid}*.txt | xz -6 -T0 | split -b $part_bytes -d - "$out/distilled.tar.xz."
    TOKENIZERS_PARALLELISM=true "$python" -m insnet prepare recipes/small.toml
}

run() {
    local out=$1 minutes=$2 job status failed=
    shift 2
    mkdir -p "$out" runs/.reports
    unpack
    for job; do [[ ${job%% *} =~ $pattern ]] || fail "cannot read the job '$job': expected $form"; done
    for job; do # one that fails must not cost the others their minutes
        set +e
        (set -e && one "$out" "$minutes" "$job")
        status=$?
        set -e
        [ $status -ne $interrupted ] || exit $interrupted
        [ $status -eq 0 ] || failed+=" '$job'"
    done
    [ -z "$failed" ] || fail "these jobs failed, see $out/log.txt:$failed"
    rm "$out/log.txt" # each run's part of it is among the reports
    local files=("$out"/*)
    [ ${#files[@]} -le $most_files ] && [ "$(du -cb "${files[@]}" | tail -n 1 | cut -f 1)" -le $most_bytes ] ||
        fail "$out holds more than comes back ($most_files files, $((most_bytes >> 20)) MiB): bring the weights in several commands"
}

timed_out=124   # what a command leaves with whose time was up
interrupted=130 # what `insnet train` leaves with when it was asked to stop
form='"[NAME=]RECIPE[@MODEL][:MINUTES] [TABLE.KEY=VALUE...]"'
pattern='^(([A-Za-z0-9_-]+)=)?([^@:=]+\.toml)(@([^:]+))?(:([0-9.]+))?$'

one() { # a killed run is continued, a finished one left alone: give the same arguments again
    local out=$1 minutes=$2 job=$3 words name recipe model word is_done=no options=()
    read -ra words <<<"$job"
    [[ ${words[0]} =~ $pattern ]]
    recipe=${BASH_REMATCH[3]} model=${BASH_REMATCH[5]} minutes=${BASH_REMATCH[7]:-$minutes}
    name=${BASH_REMATCH[2]:-$(basename "$recipe" .toml)}
    if [ -n "$model" ]; then # a run of this machine, or what `insnet train --from` finds
        if [ -d "runs/$model" ]; then model=runs/$model; fi
        options+=(--from "$model")
    fi
    for word in train.minutes="$minutes" train.updates=100000000 train.patience=0 "${words[@]:1}"; do
        options+=(--set "$word")
    done
    [ "$(cat "runs/$name/.done" 2>/dev/null)" != "$job" ] || is_done=yes
    if [ $is_done = no ]; then
        echo "== $job"
        "$python" -m insnet train "$recipe" --resume --output "runs/$name" "${options[@]}"
    fi 2>&1 | tee -i -a "runs/$name.log" "$out/log.txt"
    report "$out" "$name"
    if [ "$weights" = all ] || [[ " $weights " == *" $name "* ]]; then bring "$out" "$name"; fi
    if [ $is_done = no ]; then # last: what was learned is safe by now
        evaluation "$name" 2>&1 | tee -i -a "runs/$name.log" "$out/log.txt"
        echo "$job" >"runs/$name/.done"
        report "$out" "$name"
    fi
}

evaluation() {
    local data
    [ "$evaluate" != none ] || return 0
    data=$("$python" -c "import tomllib; print(tomllib.load(open('runs/$1/recipe.toml', 'rb'))['data']['folder'])")
    "$python" -m insnet evaluate "runs/$1" --data "$data" --split valid --output "runs/$1/evaluation" $evaluate
}

report() { # of all runs on this machine so far
    local folder=runs/.reports/$2
    mkdir -p "$folder"
    cp "runs/$2"/{recipe.toml,metrics.jsonl,README.md} "runs/$2.log" "$folder"
    [ ! -d "runs/$2/evaluation" ] || cp -r "runs/$2/evaluation" "$folder"
    tar cJf "$1/.reports" -C runs/.reports . || [ $? -eq 1 ] # 1: a run beside this one is just reporting, too
    mv "$1/.reports" "$1/reports.tar.xz"
}

bring() { # as the folder of a model, or of an adapter, with few bits a weight, cut where a file is full
    local out=$1 name
    shift
    mkdir -p "$out"
    for name; do
        "$python" -m scripts.small_model "runs/$name" "$bits"
        tar c -C "runs/$name/small" . | split -b $part_bytes -d - "$out/$name.model.tar."
    done
}

collect() {
    local out=$1 name=$2 folder=$3
    mkdir -p "$folder"
    tar xJf "$out/reports.tar.xz" -C "$folder" --strip-components 2 "./$name"
    if compgen -G "$out/$name.model.tar.*" >/dev/null; then cat "$out/$name".model.tar.* | tar x -C "$folder"; fi
}

fail() {
    echo "error: $1" >&2
    exit 1
}

case "${1:-}" in
    pack | base | write | run | bring | collect) "$@" ;;
    split) split_wheel "$2" ;;
    *) sed -n '2,13s/^# //p' "${BASH_SOURCE[0]}" >&2 && exit 2 ;;
esac
