#!/usr/bin/env bash
# Installs what is missing, builds everything, runs every test. What CI runs is what you run.
#
#   bash tests/run.sh [--yes] [--quick] [-- ctest arguments]     --quick: no sanitizer build
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=labs/setup.sh
. labs/setup.sh

yes=0 quick=0
while [ $# -gt 0 ]; do
  case "$1" in
    --yes|-y) yes=1 ;;
    --quick) quick=1 ;;
    --) shift; break ;;
    *) oomlab_say "unknown option $1 (known: --yes --quick, then -- for ctest)"; exit 2 ;;
  esac
  shift
done
[ -t 0 ] || yes=1

oomlab_install "$yes" build window tests
if ! command -v nvcc >/dev/null 2>&1 && [ -x /usr/local/cuda/bin/nvcc ]; then
  export PATH="/usr/local/cuda/bin:$PATH"
fi
jobs=$(nproc)

oomlab_say "building (warnings are errors)"
cmake --preset ci >/dev/null
cmake --build --preset ci -j "$jobs" | { grep -E 'warning|error|FAILED|^ninja' || true; }
oomlab_say "running the tests"
ctest --preset ci -j "$jobs" "$@"
