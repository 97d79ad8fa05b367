#!/usr/bin/env bash
# Everything that only a GPU can show, from a build that was made elsewhere, within 8 minutes.
#
#   bash tests/gpu/check.sh [BUILD_FOLDER] [LOG_FOLDER]
#
# The build folder holds bin/ and test/: what pack.sh gathered (build/release/gpu), or a build.
# Exit status: 0 all passed, 1 not, 77 no usable card. A table comes last; each step's output is a file
# in LOG_FOLDER.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${1:-}
for folder in build/release/gpu build/cuda/gpu build/release build/cuda build/ci; do
  [ -z "$build" ] && [ -x "$folder/bin/oomlab-gpu-check" ] && build=$folder
done
if [ -z "$build" ] || [ ! -x "$build/bin/oomlab-gpu-check" ]; then
  echo "skipped: no build with CUDA (cmake --preset cuda && cmake --build --preset cuda)"; exit 77
fi
build=$(cd "$build" && pwd)
logs=${2:-$build/logs}
mkdir -p "$logs"
[ -d "$build/lib" ] && export LD_LIBRARY_PATH="$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export OOMLAB_CONTENT=${OOMLAB_CONTENT:-$PWD/content}
started=$SECONDS
limit=470

# cuBLAS: beside the program, where the loader looks, or in a Python environment's wheels.
if ! ldconfig -p 2>/dev/null | grep -q 'libcublas\.so\.1[23]' && [ ! -e "$build/bin/libcublas.so.13" ]; then
  for lib in /usr/local/cuda/lib64 /usr/local/cuda/targets/x86_64-linux/lib \
             $(python3 -c 'import sys; print("\n".join(p + "/nvidia/cu13/lib\n" + p + "/nvidia/cublas/lib" for p in sys.path if p))' 2>/dev/null); do
    if ls "$lib"/libcublas.so.1[23] >/dev/null 2>&1; then
      export LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"; break
    fi
  done
fi

card=$("$build/bin/oomlab-gpu-check" probe)
case $? in
  0) echo "card: $card" ;;
  *) echo "skipped: $card"; exit 77 ;;
esac
nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader 2>/dev/null |
  sed 's/^/nvidia-smi: /'

rows=() failed=0
# step NAME SECONDS COMMAND...
step() {
  local name=$1 seconds=$2; shift 2
  local left=$((limit - (SECONDS - started)))
  local verdict from=$SECONDS
  if [ "$left" -le 5 ]; then
    verdict="not run: out of time"; failed=1
  else
    [ "$seconds" -gt "$left" ] && seconds=$left
    timeout "$seconds" "$@" >"$logs/$name.log" 2>&1
    case $? in
      0) verdict=passed ;;
      77) verdict="skipped: $(grep -m1 -o 'skipped: .*' "$logs/$name.log" | cut -c10-80)" ;;
      124|137) verdict="FAILED: longer than $seconds s"; failed=1 ;;
      *) verdict="FAILED: $(tail -1 "$logs/$name.log" | cut -c1-80)"; failed=1 ;;
    esac
  fi
  rows+=("$(printf '%-34s %5d s  %s' "$name" $((SECONDS - from)) "$verdict")")
  echo "== $name: $verdict"
}

step kernels_and_device 150 "$build/test/test_gpu"
for fault in bad_launch library_alloc_failed illegal_access device_assert; do
  step "fault_$fault" 40 "$build/bin/oomlab-gpu-check" fault "$fault"
done
step rates 120 "$build/bin/oomlab-gpu-check" rates

# The server on the card: what must end how. The scenarios size themselves by memory_limit.
if [ -x "$build/bin/oomlab-server-cuda" ]; then
  for scenario in tests/gpu/scenarios/*.toml; do
    name=$(basename "$scenario" .toml)
    expected=$(sed -n 's/^# exit: //p' "$scenario")
    pattern=$(sed -n 's/^# says: //p' "$scenario")
    step "server_$name" 60 bash -c '
      "$1" --scenario "$2" --device cuda:0; status=$?
      if [ "$status" -ne "$3" ]; then echo "exit status $status, not $3"; exit 1; fi' \
      _ "$build/bin/oomlab-server-cuda" "$scenario" "$expected"
    if [ -n "$pattern" ] && ! grep -q -- "$pattern" "$logs/server_$name.log"; then
      rows+=("$(printf '%-34s          FAILED: it does not say "%s"' "server_$name" "$pattern")"); failed=1
    fi
  done
fi

# The card's simulated twin, from this card's own constants, beside the card.
step calibrate 60 bash -c '"$1" >"$2"' _ "$build/bin/oomlab-calibrate" "$logs/card.toml"
if [ -x "$build/bin/oomlab" ] && [ -s "$logs/card.toml" ]; then
  for scenario in tests/gpu/scenarios/*.toml; do
    step "twin_$(basename "$scenario" .toml)" 60 \
      python3 tests/gpu/twin.py "$build/bin/oomlab" "$scenario" cuda:0 "sim:$logs/card.toml"
  done
fi

"$build/bin/oomlab-alloc-sequences" >"$logs/sequences.json"
step torch_parity 90 python3 tests/gpu/torch_parity.py "$logs/sequences.json"

[ -s "$logs/rates.log" ] && { echo; cat "$logs/rates.log"; }
[ -s "$logs/card.toml" ] && { echo; cat "$logs/card.toml"; }
for log in "$logs"/twin_*.log "$logs/torch_parity.log"; do
  [ -s "$log" ] && { echo; echo "$(basename "$log" .log):"; cat "$log"; }
done
echo
grep -hE '^(illegal_access|device_assert|bad_launch|library_alloc_failed) ' "$logs"/fault_*.log
echo
echo "card: $card"
printf '%s\n' "${rows[@]}"
echo "$((SECONDS - started)) s in all; logs in $logs"
exit $failed
