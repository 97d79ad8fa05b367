#!/bin/sh
# Runs as process 1 of a User-Mode-Linux guest whose root is the host's, read-only. Exercises the
# cgroup v2 ways for real and prints one line a check; the last line says that all were reached.
# The kernel's command line brings: oomlab_test=FOLDER (the test programs).
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /dev/shm 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for word in $(cat /proc/cmdline); do
  case "$word" in oomlab_test=*) folder=${word#oomlab_test=} ;; esac
done
say() { echo "UML: $*"; }
fails=0
# check NAME WANTED-WAY COMMAND...: one real kill, and which way was taken
check() {
  name=$1 way=$2
  shift 2
  out=$("$@" 2>&1)
  case "$out" in
    *'"outcome":"host_oom"'*"\"way\":\"$way\""* | *"\"way\":\"$way\""*'"outcome":"host_oom"'*) say "ok $name" ;;
    *) fails=$((fails + 1)); say "FAILED $name: $out" ;;
  esac
}
once() { "$folder/test_supervise_once" "$folder/test_victim" "/tmp/$1" 24 eat 60; }

say "kernel $(uname -r)"
check v2_root "cgroup v2 (root)" once root.trace

# A group of our own that holds nobody else: the way that a delegated systemd scope goes, as root...
mkdir /sys/fs/cgroup/own
cat > /tmp/enter.sh <<'S'
echo 0 > /sys/fs/cgroup/own/cgroup.procs
exec "$@"
S
check v2_own "cgroup v2 (own group)" sh /tmp/enter.sh \
  "$folder/test_supervise_once" "$folder/test_victim" /tmp/own.trace 24 eat 60
# ...and as an ordinary user, to whom the group was handed.
chown nobody /sys/fs/cgroup/own /sys/fs/cgroup/own/cgroup.procs /sys/fs/cgroup/own/cgroup.subtree_control
check v2_delegated "cgroup v2 (own group)" sh /tmp/enter.sh \
  setpriv --reuid=65534 --regid=65534 --clear-groups \
  "$folder/test_supervise_once" "$folder/test_victim" /tmp/delegated.trace 24 eat 60

if OOMLAB_ORPHAN_RUNS=5 "$folder/test_supervisor" -tc='orphans*,host oom: below*,host oom: a*' > /tmp/out 2>&1 &&
   ! grep -q 'skipped:' /tmp/out; then
  say "ok orphans and clean groups"
else
  fails=$((fails + 1)); say "FAILED orphans"; cat /tmp/out
fi
left=$(find /sys/fs/cgroup -name 'oomlab-*' | wc -l)
[ "$left" = 0 ] && say "ok nothing left" || { fails=$((fails + 1)); say "FAILED $left groups left"; }
say "end, $fails failed"
# Powers the guest off.
echo o > /proc/sysrq-trigger
while :; do sleep 1; done
