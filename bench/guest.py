#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boots a kernel in QEMU in real time (no counted instructions) and runs a shell script in it as root.

For what virtual time cannot have: a guest that is stopped from outside (SIGSTOP of QEMU), interrupts that QEMU's
control line sends. What the script leaves in /run/out comes back into the folder --out.

    bench/guest.py --kernel VMLINUZ --script FILE --out FOLDER [--smp N] [--program [NAME=]FILE]… [--append WORDS]
                   [--icount] [--stop-ms MS --stop-every-ms MS] [--nmi-every-ms MS] [--limit-s S]

The stops and interrupts begin when the script writes `begin` to /dev/ttyS1 and end with `end`. A stop is written to
FOLDER/stops.jsonl with its length. No accelerator: QEMU's own translation (TCG) runs everywhere.
"""
import argparse, base64, gzip, io, json, os, random, re, signal, socket, stat, subprocess, sys, tarfile, time

TOOLS = ["sh", "mount", "mkdir", "cat", "sleep", "tar", "base64", "stty", "chrt", "taskset", "ls", "dmesg", "head", "tail", "grep"]
INIT = """#!/bin/sh
export PATH=/bin:/usr/bin HOME=/run
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm /run /tmp
mount -t devpts devpts /dev/pts; mount -t tmpfs tmpfs /dev/shm; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /tmp
mount -t tracefs tracefs /sys/kernel/tracing
mkdir -p /run/out
stty -F /dev/ttyS1 raw 2>/dev/null
sh /script >/run/out/stdout 2>/run/out/stderr
echo "status $?" >>/run/out/stderr
echo files >/dev/ttyS1
tar c -C /run/out . | base64 >/dev/ttyS1
echo done >/dev/ttyS1
sleep 1
echo b >/proc/sysrq-trigger
sleep 60
"""


def archive(files):
    """A cpio archive (newc) of name: (mode, bytes)."""
    out, inode = io.BytesIO(), 1
    for name, (mode, data) in [*files.items(), ("TRAILER!!!", (0, b""))]:
        raw = name.encode() + b"\0"
        fields = [inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0]
        out.write(b"070701" + b"".join(b"%08x" % f for f in fields) + raw)
        out.write(b"\0" * (-(110 + len(raw)) % 4) + data + b"\0" * (-len(data) % 4))
        inode += 1
    return gzip.compress(out.getvalue(), 1)


def tree(programs, script, more):
    """The guest's files: tools and programs with their libraries."""
    files, folders = {}, set()

    def add(path, data, mode=0o755):
        parts = path.strip("/").split("/")
        for n in range(1, len(parts)):
            folders.add("/".join(parts[:n]))
        files["/".join(parts)] = (stat.S_IFREG | mode, data)

    for program in [*TOOLS, *programs]:
        name, _, program = program.rpartition("=")
        here = program if "/" in program else subprocess.run(["sh", "-c", f"command -v {program}"], capture_output=True, text=True).stdout.strip()
        add("bin/" + (name or os.path.basename(program)), open(here, "rb").read())
        libraries = subprocess.run(["ldd", here], capture_output=True, text=True).stdout
        for library in re.findall(r"(/\S+\.so\S*)", libraries):
            add(library, open(library, "rb").read())
    add("init", INIT.encode())
    add("script", open(script, "rb").read())
    for name, path in more:
        add(name, open(path, "rb").read())
    for folder in ("proc", "sys", "dev", "run", "tmp"):
        folders.add(folder)
    return {**{f: (stat.S_IFDIR | 0o755, b"") for f in sorted(folders)}, **files}


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--kernel", required=True)
    a.add_argument("--script", required=True)
    a.add_argument("--out", required=True)
    a.add_argument("--smp", type=int, default=1)
    a.add_argument("--program", action="append", default=[])
    a.add_argument("--append", default="")
    a.add_argument("--icount", action="store_true")
    a.add_argument("--stop-ms", type=float)
    a.add_argument("--stop-every-ms", type=float, default=500)
    a.add_argument("--nmi-every-ms", type=float)
    a.add_argument("--limit-s", type=float, default=240)
    a = a.parse_args()
    os.makedirs(a.out, exist_ok=True)
    image, control, line = (os.path.join(a.out, f) for f in ("initramfs.gz", "qmp", "line"))
    with open(image, "wb") as f:
        f.write(archive(tree(a.program, a.script, [])))
    for path in (control, line):
        if os.path.exists(path):
            os.unlink(path)
    words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "pc", "-cpu", "qemu64",
             "-accel", "tcg", "-smp", str(a.smp), "-m", "768", "-kernel", a.kernel, "-initrd", image,
             "-append", f"console=ttyS0 panic=-1 nokaslr loglevel=3 rdinit=/init {a.append}",
             "-serial", f"file:{a.out}/console", "-chardev", f"socket,id=line,path={line},server=on,wait=off",
             "-serial", "chardev:line", "-qmp", f"unix:{control},server=on,wait=off"]
    if a.icount:
        words += ["-icount", "shift=0,sleep=off,align=off"]
    qemu = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        told = follow(a, qemu, control, line)
    finally:
        if qemu.poll() is None:
            qemu.send_signal(signal.SIGCONT)
            qemu.kill()
        qemu.wait()
    os.unlink(image)
    packed = told.rsplit(b"files\n", 1)[-1].split(b"done\n")[0]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed)), mode="r:") as tar:
        tar.extractall(a.out, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(a.out)


def connect(path):
    for _ in range(200):
        try:
            s = socket.socket(socket.AF_UNIX)
            s.connect(path)
            return s
        except OSError:
            time.sleep(0.05)
    sys.exit(f"guest: QEMU opened no {path}")


def follow(a, qemu, control, line):
    qmp, serial = connect(control), connect(line)
    qmp.sendall(b'{"execute":"qmp_capabilities"}\n')
    serial.setblocking(False)
    told, begun, due, chance = b"", time.monotonic(), None, random.Random(1)
    log = open(os.path.join(a.out, "stops.jsonl"), "w")
    while not told.endswith(b"done\n"):
        now = time.monotonic()
        if now - begun > a.limit_s:
            sys.exit("guest: it was not done in time; see console")
        if qemu.poll() is not None:
            sys.exit("guest: QEMU ended; see console")
        try:
            told += serial.recv(1 << 16).replace(b"\r\n", b"\n")
        except BlockingIOError:
            time.sleep(0.002)
        active = b"begin\n" in told and b"end\n" not in told
        every = a.nmi_every_ms if a.nmi_every_ms else a.stop_every_ms if a.stop_ms else None
        if not active or not every:
            continue
        if due is None:
            due = now + every / 1000
        if now < due:
            continue
        due = now + every / 1000 * (0.75 + chance.random() / 2)
        if a.nmi_every_ms:
            qmp.sendall(b'{"execute":"inject-nmi"}\n')
            log.write(json.dumps({"nmi": now}) + "\n")
        else:
            qemu.send_signal(signal.SIGSTOP)
            time.sleep(a.stop_ms / 1000)
            qemu.send_signal(signal.SIGCONT)
            log.write(json.dumps({"stopped_ms": (time.monotonic() - now) * 1000}) + "\n")
    return told


main()
