#!/usr/bin/env bash
# Compiles every kernel for every architecture and writes what each one takes: registers, shared
# memory, stack and spilled bytes. Needs nvcc, no GPU.
#
#   bash tests/gpu/kernel_resources.sh > tests/gpu/kernel_resources.tsv
set -euo pipefail
cd "$(dirname "$0")/../.."
nvcc=${CUDACXX:-nvcc}
command -v "$nvcc" >/dev/null || nvcc=/usr/local/cuda/bin/nvcc
printf '# %s\n' "$("$nvcc" --version | grep release)"
printf 'architecture\tkernel\tregisters\tshared_bytes\tstack_bytes\tspill_store_bytes\tspill_load_bytes\n'
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
for arch in 75 80 86 89 90 100 120; do
  for source in kernels/ops/cuda/*.cu; do
    nice "$nvcc" -std=c++20 -O3 -DNDEBUG -I. -arch=sm_$arch -cubin -o "$work/out.cubin" \
      -Xptxas -v "$source" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    c++filt <"$work/log" | awk -v arch="sm_$arch" '
      /Compiling entry function/ {
        name = $0
        sub(/^[^\x27]*\x27(void )?/, "", name); sub(/\x27 for .*$/, "", name)
        gsub(/oomlab::(kernel::)?(number::)?/, "", name); gsub(/\(anonymous namespace\)::/, "", name)
        sub(/\(.*$/, "", name)
      }
      /bytes stack frame/ { stack = $1; store = $5; load = $9 }
      /Used [0-9]+ registers/ {
        registers = 0; shared = 0
        for (i = 1; i < NF; ++i) {
          if ($i == "Used") registers = $(i + 1)
          if ($(i + 2) ~ /^smem/ && $(i + 1) == "bytes") shared = $i
        }
        printf "%s\t%s\t%d\t%d\t%d\t%d\t%d\n", arch, name, registers, shared, stack, store, load
      }' | sort
  done
done
