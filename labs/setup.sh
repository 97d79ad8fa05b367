# What both commands of the README need; sourced, never run. Debian 12 or later and Ubuntu.
#
# oomlab_packages WHAT...   prints the missing ones of these groups: build tests window
# oomlab_install YES WHAT...  says what is missing, asks (unless YES is 1 or there is no terminal)
#                           and installs it, with sudo only when not root
# oomlab_build PRESET DIR [cmake options...]

oomlab_say() { printf '%s\n' "oomlab: $*" >&2; }

oomlab_packages() {
  local group
  for group in "$@"; do
    case "$group" in
      build) echo g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev \
               libtomlplusplus-dev libcli11-dev libre2-dev libmd4c-dev libstb-dev ;;
      window) echo libimgui-dev libglfw3-dev libgl-dev libegl-dev libgl1-mesa-dri fonts-dejavu-core ;;
      tests) echo doctest-dev libbenchmark-dev xvfb xauth ;;
    esac
  done
}

oomlab_missing() {
  local package
  for package in $(oomlab_packages "$@"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
  done
}

oomlab_install() {
  local yes="$1"; shift
  if ! command -v apt-get >/dev/null 2>&1; then
    oomlab_say "this script installs with apt-get, which is not here; install by hand: $(oomlab_packages "$@" | tr '\n' ' ')"
    return 0
  fi
  local missing
  missing=$(oomlab_missing "$@" | tr '\n' ' ')
  [ -z "$missing" ] && return 0
  local root=""
  if [ "$(id -u)" -ne 0 ]; then
    root="sudo"
    if ! command -v sudo >/dev/null 2>&1; then
      oomlab_say "not root and no sudo here; ask somebody to run: apt-get install $missing"
      return 3
    fi
  fi
  oomlab_say "missing packages: $missing"
  if [ "$yes" != 1 ] && [ -t 0 ]; then
    printf 'oomlab: install them now with apt-get? [Y/n] ' >&2
    local answer
    read -r answer
    case "$answer" in n*|N*) oomlab_say "nothing was installed"; return 3 ;; esac
  fi
  # shellcheck disable=SC2086
  if ! $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1; then
    oomlab_say "refreshing the package lists"
    $root apt-get update -qq >&2 || { oomlab_say "apt-get update failed: is there a network?"; return 3; }
    # shellcheck disable=SC2086
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 || {
      oomlab_say "apt-get could not install: $missing"; return 3; }
  fi
}
