#!/bin/sh
# Compiles one program: compile.sh NAME.bpf.c NAME.bpf.o
set -e
here=$(dirname "$0")
clang --target=bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -Wno-unused-parameter \
    "-ffile-prefix-map=$(cd "$here" && pwd)=programs" -fdebug-compilation-dir=programs -c "$1" -o "$2"
llvm-objcopy -g -x --remove-section=.rel.BTF --remove-section=.rel.BTF.ext --remove-section=.llvm_addrsig "$2"
