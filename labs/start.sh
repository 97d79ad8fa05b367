#!/usr/bin/env bash
# From a fresh clone to the first lab: installs what is missing (says so first), builds the course
# and the simulated server, opens the course. The rest builds when it is asked for.
#
#   bash labs/start.sh [--yes] [--build-only] [DIR]     DIR: the learner's folder, default ~/oomlab
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=labs/setup.sh
. labs/setup.sh

yes=0 build_only=0 dir=""
for argument in "$@"; do
  case "$argument" in
    --yes|-y) yes=1 ;;
    --build-only) build_only=1 ;;
    -h|--help) sed -n '2,6p' "$0" | cut -c3-; exit 0 ;;
    -*) oomlab_say "unknown option $argument (known: --yes --build-only)"; exit 2 ;;
    *) dir="$argument" ;;
  esac
done

oomlab_install "$yes" build window
if [ ! -x /usr/local/cuda/bin/nvcc ] || command -v nvcc >/dev/null 2>&1; then :; else
  export PATH="/usr/local/cuda/bin:$PATH"
fi
log=build/start.log
mkdir -p build
oomlab_say "building (log: $log)"
cmake --preset release -DOOMLAB_TESTS=OFF -DOOMLAB_BENCH=OFF >"$log" 2>&1 || { tail -20 "$log" >&2; exit 4; }
cmake --build --preset release --target oomlab oomlab-server-sim >>"$log" 2>&1 || { tail -20 "$log" >&2; exit 4; }
[ "$build_only" = 1 ] && { oomlab_say "built: build/release/bin/oomlab"; exit 0; }
exec build/release/bin/oomlab start "${dir:-$HOME/oomlab}"
