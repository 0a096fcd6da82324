#!/bin/sh
# Compiles a program: compile.sh NAME OUTPUT. The output depends only on the sources and on clang's version, not on the
# folder of the sources.
set -e
for tool in clang llvm-objcopy; do
    command -v $tool > /dev/null || { echo "$tool is needed to compile programs (apt-get install clang llvm)" >&2; exit 1; }
done
case $2 in /*) output=$2 ;; *) output=$PWD/$2 ;; esac
cd "$(dirname "$0")"
# A controller is compiled together with the table of its operations.
source=$1.table.c
[ -e "$source" ] || source=$1.bpf.c
clang --target=bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter -fdebug-compilation-dir=programs \
    -c "$source" -o "$output"
# libbpf needs the types and the relocations of member accesses (BTF), but no other debug information.
llvm-objcopy -g -x --remove-section=.rel.BTF --remove-section=.rel.BTF.ext --remove-section=.llvm_addrsig "$output"
