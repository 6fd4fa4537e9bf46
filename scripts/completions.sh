#!/usr/bin/env bash
# Writes the shells' completions of mig into DIR (completions/ in this repository, if not given).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=${1:-$root/completions}
mig=$(mktemp -d)
trap 'rm -rf "$mig"' EXIT

go build -C "$root" -o "$mig/mig" ./cmd/mig
mkdir -p "$dir"
"$mig/mig" completion bash       >"$dir/mig.bash"
"$mig/mig" completion zsh        >"$dir/mig.zsh"
"$mig/mig" completion fish       >"$dir/mig.fish"
"$mig/mig" completion powershell >"$dir/mig.ps1"
