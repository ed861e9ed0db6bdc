#!/bin/busybox sh
# The first process of a kernel under test: mounts the host's files read-only, with what a Linux machine has beside them, and
# goes on in there. Folders that programs write to are in memory.
busybox=/bin/busybox

$busybox mkdir /proc /sys /dev /host
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sys /sys
$busybox mount -t devtmpfs dev /dev
for module in /modules/*; do
    $busybox insmod $module || echo "$module can't be loaded"
done

share() {
    $busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,$3 $1 "$2" || $busybox poweroff -f
}
share root /host ro,cache=loose
for folder in tmp run var/tmp root; do
    $busybox mount -t tmpfs $folder /host/$folder
done
# The checkout may be in one of these folders. Variables are of the kernel's command line.
$busybox mkdir -p "/host/$checkout"
share checkout "/host/$checkout" ro,cache=loose
$busybox mount -t tmpfs target "/host/$checkout/target/tmp"
$busybox mkdir /host/run/vm
share vm /host/run/vm rw

$busybox mkdir /dev/pts /dev/shm
$busybox mount -t devpts pts /dev/pts
$busybox mount -t tmpfs shm /dev/shm
$busybox ln -s /proc/self/fd /dev/fd
for number in 0:stdin 1:stdout 2:stderr; do
    $busybox ln -s /proc/self/fd/${number%:*} /dev/${number#*:}
done
$busybox mount -t tracefs trace /sys/kernel/tracing
$busybox mount -t debugfs debug /sys/kernel/debug
$busybox mount -t bpf bpf /sys/fs/bpf
$busybox mount -t cgroup2 cgroup /sys/fs/cgroup
for folder in proc sys dev; do
    $busybox mount --move /$folder /host/$folder
done
$busybox ip link set lo up
# What is printed is not for a terminal.
$busybox stty -F /host/dev/ttyS1 raw
exec $busybox switch_root /host /bin/sh /run/vm/guest
