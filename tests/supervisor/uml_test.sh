#!/bin/sh
# The cgroup v2 ways, tested in a User-Mode-Linux guest: a real 6.x kernel as an ordinary process, the
# host's files as its root, read-only. Installs nothing; exit 77 (skipped) with a reason where it
# cannot run.
#   uml_test.sh root|systemd FOLDER-OF-TEST-PROGRAMS [SANITIZERS]
# root: v2 as root, in a group of our own, in one that was handed to a user. systemd: boots systemd in
# the guest and goes through `systemd-run --user --scope` as an ordinary user.
kind=$1 folder=$2
here=$(cd "$(dirname "$0")" && pwd)
limit_s=200
skip() { echo "skipped: $*"; exit 77; }
need() { command -v "$1" >/dev/null 2>&1 || [ -x "/sbin/$1" ] || skip "$1 is not installed"; }

[ -z "$3" ] || skip "sanitizers ($3) need more memory than the guest has"
uml=$(command -v linux.uml || command -v linux) || skip "no User-Mode-Linux here (Debian: user-mode-linux)"
"$uml" --help 2>&1 | grep -qi 'user mode linux' || skip "$uml is not User-Mode-Linux"
need timeout
need setpriv
init=$here/uml_init.sh
if [ "$kind" = systemd ]; then
  need insmod
  need dbus-daemon
  [ -x /lib/systemd/systemd ] || skip "systemd is not installed"
  init=$here/uml_systemd_init.sh
fi

out=$(timeout -k 5 $limit_s "$uml" root=/dev/root rootfstype=hostfs rootflags=/ ro mem=512M \
  con=null con0=fd:0,fd:1 quiet loglevel=1 init="$init" oomlab_test="$folder" </dev/null 2>&1)
status=$?
echo "$out" | grep -a '^UML:' || { echo "$out" | tail -20; skip "the guest did not start (status $status)"; }
[ "$status" != 124 ] || skip "the guest took longer than $limit_s s"
echo "$out" | grep -aq '^UML: skip' && exit 77
echo "$out" | grep -aq '^UML: end, 0 failed' && exit 0
echo "$out"
exit 1
