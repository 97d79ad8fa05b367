#!/usr/bin/env bash
# Gathers what a GPU machine needs that has neither our packages nor a compiler: the programs and the
# shared libraries that such a machine may lack, in BUILD_FOLDER/gpu. Then check.sh runs there.
#
#   bash tests/gpu/pack.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release}
pack=$build/gpu
rm -rf "$pack"
mkdir -p "$pack/bin" "$pack/test" "$pack/lib"
for program in bin/oomlab-gpu-check bin/oomlab-alloc-sequences bin/oomlab-server-cuda \
               bin/oomlab-server-sim bin/oomlab-calibrate bin/oomlab test/test_gpu; do
  [ -x "$build/$program" ] || { echo "not built, left out: $program"; continue; }
  cp "$build/$program" "$pack/$program"
  strip "$pack/$program"
  # The C and C++ run time of the machine itself is used; it must not be older than ours.
  ldd "$build/$program" | awk '/=> \//{print $1, $3}' |
    grep -Ev '^(libc|libm|libgcc_s|libstdc\+\+|libdl|libpthread|librt)\.' |
    while read -r _ path; do cp -Ln "$path" "$pack/lib/" 2>/dev/null || true; done
done
bytes=$(du -sb "$pack" | cut -f1)
echo "$pack: $((bytes / 1048576)) MiB (64 may be carried)"
[ "$bytes" -le $((64 * 1048576)) ]
