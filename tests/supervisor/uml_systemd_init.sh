#!/bin/sh
# Process 1 of a User-Mode-Linux guest: puts a writable layer over the host's files (which stay as they
# are), and boots systemd on it with one job, the script below. That job starts the manager of an
# ordinary user and lets the supervisor find its way: through systemd-run into a delegated scope.
mount -t proc proc /proc
for word in $(cat /proc/cmdline); do
  case "$word" in oomlab_test=*) folder=${word#oomlab_test=} ;; esac
done
mount -t tmpfs tmpfs /tmp
mkdir /tmp/upper /tmp/work /tmp/root
/sbin/insmod "/usr/lib/uml/modules/$(uname -r)/kernel/fs/overlayfs/overlay.ko" 2>/dev/null
mount -t overlay overlay -o lowerdir=/,upperdir=/tmp/upper,workdir=/tmp/work /tmp/root ||
  { echo "UML: skip, no overlay file system in this guest"; echo o > /proc/sysrq-trigger; sleep 9; }
root=/tmp/root
echo 'learner:x:1000:1000::/tmp:/bin/sh' >> $root/etc/passwd
echo 'learner:x:1000:' >> $root/etc/group
: > $root/etc/fstab
echo 0123456789abcdef0123456789abcdef > $root/etc/machine-id
cat > $root/etc/systemd/system/oomlab.service <<U
[Unit]
DefaultDependencies=no
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/sh /etc/oomlab-job.sh $folder
StandardOutput=file:/dev/console
StandardError=file:/dev/console
U
cat > $root/etc/systemd/system/oomlab.target <<'U'
[Unit]
Requires=dbus.socket
Wants=oomlab.service
After=dbus.socket
U
cat > $root/etc/oomlab-job.sh <<'J'
folder=$1
mount -t tmpfs tmpfs /tmp
systemctl start user@1000.service || echo "UML: the user manager did not start"
out=$(cd /tmp && setpriv --reuid=1000 --regid=1000 --clear-groups env XDG_RUNTIME_DIR=/run/user/1000 \
  "$folder/test_supervise_once" "$folder/test_victim" /tmp/scope.trace 24 eat 60 2>&1)
fails=1
case "$out" in
  *'"outcome":"host_oom"'*'"way":"cgroup v2 (own group)"'* | *'"way":"cgroup v2 (own group)"'*'"outcome":"host_oom"'*) fails=0 ;;
esac
[ $fails = 0 ] && echo "UML: ok scope, systemd $(systemctl --version | head -1 | cut -d' ' -f2)" || echo "UML: FAILED scope: $out"
left=$(find /sys/fs/cgroup \( -name 'oomlab-*' -o -name 'run-*.scope' \) | wc -l)
[ "$left" = 0 ] && echo "UML: ok nothing left" || { fails=1; echo "UML: FAILED $left groups left"; }
echo "UML: end, $fails failed"
systemctl poweroff --force --force
J
mount -t sysfs sys $root/sys
exec chroot $root /lib/systemd/systemd --unit=oomlab.target --log-level=warning --log-target=console --show-status=no
