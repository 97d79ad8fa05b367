#!/bin/sh
# The cgroup v2 ways, tested in a User-Mode-Linux guest: a real 6.x kernel as an ordinary process, the
# host's files as its root, read-only. Installs nothing; exit 77 (skipped) with a reason where it
# cannot run.    uml_test.sh FOLDER-OF-TEST-PROGRAMS [SANITIZERS]
folder=$1
here=$(cd "$(dirname "$0")" && pwd)
skip() { echo "skipped: $*"; exit 77; }
[ -z "$2" ] || skip "sanitizers ($2) need more memory than the guest has"
uml=$(command -v linux.uml || command -v linux) || skip "no User-Mode-Linux here (Debian: user-mode-linux)"
"$uml" --help 2>&1 | grep -qi 'user mode linux' || skip "$uml is not User-Mode-Linux"
command -v timeout >/dev/null && command -v setpriv >/dev/null || skip "timeout or setpriv is missing"

out=$(timeout -k 5 150 "$uml" root=/dev/root rootfstype=hostfs rootflags=/ ro mem=512M \
  con=null con0=fd:0,fd:1 quiet loglevel=1 init="$here/uml_init.sh" oomlab_test="$folder" \
  </dev/null 2>&1)
status=$?
echo "$out" | grep -a '^UML:' || { echo "$out" | tail -20; skip "the guest did not start (status $status)"; }
[ "$status" != 124 ] || skip "the guest took longer than 150 s"
echo "$out" | grep -aq '^UML: end, 0 failed' && exit 0
echo "$out"
exit 1
