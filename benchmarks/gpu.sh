#!/bin/sh
# Does this GPU compute what it must, and how fast? Exactness first, then speeds beside peers measured in the
# same call; JSON in gpu.json. Then the deck's race, on the CPU and the GPU, in the folder gpu/ for
# `isoloss deck --results`. At most 8 minutes.
#
#     sh benchmarks/gpu.sh                          on a machine with a CUDA GPU
#     sh benchmarks/gpu.sh --device cpu --tiny      a rehearsal without one
#
# OUT=FILE names another file, PYTHON another interpreter than the checkout's.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-$([ -x .venv/bin/python ] && echo .venv/bin/python || echo python3)}
OUT=${OUT:-gpu.json}
device=cuda
size=
while [ $# -gt 0 ]; do
    case $1 in
        --device) device=$2; shift 2 ;;
        --tiny) size=--quick; shift ;;
        *) echo "usage: sh benchmarks/gpu.sh [--device cpu --tiny]" >&2; exit 2 ;;
    esac
done
PYTHONPATH=src${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
# Killed before its end it still writes the rows that it has: SIGINT, not SIGKILL.
status=0
timeout --signal=INT --kill-after=15 390 "$PYTHON" -m isoloss.cli bench gpu --device "$device" $size --seconds 1 --out "$OUT" || status=$?
[ -n "$size" ] || timeout --kill-after=5 80 "$PYTHON" -m isoloss.cli demo race --panel race --full --set budget_seconds=45 -o "${OUT%.json}" || status=$?
exit $status
