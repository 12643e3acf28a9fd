#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plants loops with preemption disabled in a kernel, and lets the program find them: 100 µs brought by one commit of 64, the same brought
# by one configuration option of 64, and 500 µs behind three conditions.
#
#   bench/planted.sh FOLDER SOURCE commits|options|hunt [OPTION…]
#
# FOLDER keeps tree and answers: the same command goes on where it was. SOURCE is the folder of a Linux source tree of 6.12 (Debian's
# package linux-source-6.12, unpacked). OPTIONs are handed to the search. PROGRAM is the program (default: target/release/tailbound, else
# target/debug/tailbound).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PROGRAM:-}" ]; then
    PROGRAM=$here/target/release/tailbound
    [ -x "$PROGRAM" ] || PROGRAM=$here/target/debug/tailbound
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
what=$3
shift 3
load=hackbench:ipc=pipe

# In pipe_write, which each message of hackbench meets. $1 is the tree, $2 the condition.
plant_in_pipe() {
    python3 - "$1/fs/pipe.c" "$2" <<'PYTHON'
import re, sys

path, condition = sys.argv[1:]
text = open(path).read()
begin = text.index("\npipe_write(struct kiocb *iocb")
at = text.index("\t/* Null write succeeds. */", begin)
loop = "\tif (%s) {\n\t\tpreempt_disable();\n\t\tudelay(100);\n\t\tpreempt_enable();\n\t}\n" % condition
text = text[:at] + loop + text[at:]
open(path, "w").write(text.replace("#include <linux/mm.h>", "#include <linux/mm.h>\n#include <linux/delay.h>", 1))
PYTHON
}

copied() {
    if [ ! -e "$folder/$1/.copied" ]; then
        rm -rf "${folder:?}/$1"
        cp -a "$source" "$folder/$1"
        touch "$folder/$1/.copied"
    fi
}

case $what in
commits)
    tree=$folder/commits
    if [ ! -e "$tree/.git/planted" ]; then
        copied commits
        cd "$tree"
        rm -rf .git .copied
        git init -q -b main
        git config user.name planted
        git config user.email planted@localhost
        git config gc.auto 0
        git add -A -f
        git commit -q -m "the source"
        n=0
        for file in $(printf '%s\n' mm/*.c kernel/time/*.c kernel/sched/*.c fs/*.c | head -n 64); do
            n=$((n + 1))
            # Code that nobody calls: it moves about what is called.
            printf '\nvoid __attribute__((used)) moves_about_%s(void);\nvoid moves_about_%s(void) { asm volatile("nop"); }\n' $n $n >>"$file"
            [ $n != 41 ] || plant_in_pipe . 1
            git commit -q -a -m "commit $n"
        done
        touch .git/planted
    fi
    cd "$folder"
    exec "$PROGRAM" bisect commits --tree "$tree" --good main~64 --bad main -L "$load" -D 100ms -o found-commits "$@"
    ;;
options)
    copied options
    cd "$folder"
    if [ ! -e options/.planted ]; then
        plant_in_pipe options 'IS_ENABLED(CONFIG_PLANTED_LOOP)'
        printf '\nconfig PLANTED_LOOP\n\tbool "A loop in each write to a pipe"\n' >>options/lib/Kconfig
        touch options/.planted
    fi
    "$PROGRAM" lab kernel build --source options --name planted-options -q >&2
    config=${TAILBOUND_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/tailbound/lab}/builds/planted-options/config
    # Character sets, and then ciphers and hashes, which nobody uses.
    names=$(sed -n 's/^config \(NLS_[A-Z0-9_]*\)$/\1/p' options/fs/nls/Kconfig | grep -v NLS_DEFAULT | head -n 47)
    names="$names $(sed -n 's/^config \(CRYPTO_[A-Z0-9_]*\)$/\1/p' options/crypto/Kconfig |
        grep -E '_(ANUBIS|ARIA|BLOWFISH|CAMELLIA|CAST5|CAST6|FCRYPT|KHAZAD|SEED|SERPENT|TEA|TWOFISH|WP512|RMD160|MD4|VMAC|XCBC|MICHAEL_MIC|STREEBOG|KEYWRAP)$')"
    names=$(printf '%s\n' $names | head -n 63)
    cp "$config" good.config
    { echo CONFIG_NLS=y && echo CONFIG_CRYPTO=y && echo CONFIG_CRYPTO_MANAGER=y; } >>good.config
    cp good.config bad.config
    for name in $names PLANTED_LOOP; do
        sed -i "/CONFIG_$name[ =]/d" good.config bad.config
        echo "# CONFIG_$name is not set" >>good.config
        echo "CONFIG_$name=y" >>bad.config
    done
    exec "$PROGRAM" bisect config --source options --good good.config --bad bad.config -L "$load" -D 100ms -o found-options "$@"
    ;;
hunt)
    copied hunt
    cd "$folder"
    if [ ! -e hunt/.planted ]; then
        # A file that is mapped, locked, and open nowhere else any more when it is unmapped.
        python3 - hunt/mm/vma.c <<'PYTHON'
import sys

path = sys.argv[1]
text = open(path).read()
at = text.index("\treturn do_vmi_align_munmap(", text.index("\nint do_vmi_munmap(struct vma_iterator"))
loop = "\tif (vma->vm_file && (vma->vm_flags & VM_LOCKED) && file_count(vma->vm_file) == 1) {\n\t\tpreempt_disable();\n\t\tudelay(500);\n\t\tpreempt_enable();\n\t}\n\n"
open(path, "w").write("#include <linux/delay.h>\n" + text[:at] + loop + text[at:])
PYTHON
        touch hunt/.planted
    fi
    "$PROGRAM" lab kernel build --source hunt --fragment "${FRAGMENTS:-none}" --name planted-hunt
    exec "$PROGRAM" hunt -k build:planted-hunt -o found-hunt "$@"
    ;;
*)
    echo "planted.sh: $what: commits, options or hunt" >&2
    exit 2
    ;;
esac
