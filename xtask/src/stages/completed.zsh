# SPDX-License-Identifier: MIT OR Apache-2.0
# What zsh makes of $2 and a tab, with the completions of the folder $1; ends when the line has $3. Source: zshmodules(1), zsh/zpty.
zmodload zsh/zpty || exit 1
export TERM=dumb
zpty shell zsh -f -i
# The line is echoed: `ready` stands in it in two parts.
zpty -w shell "PROMPT=; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; tailbound() { }; print re''ady"
zpty -r shell text '*ready*' || { print -r -- "$text"; exit 1 }
zpty -w -n shell "$2"$'\t'
zpty -r shell text "*$3*" || { print -r -- "$text"; exit 1 }
zpty -d shell
