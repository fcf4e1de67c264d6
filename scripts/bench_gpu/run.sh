#!/usr/bin/env bash
# run.sh [ARGS...]: times the paper's CIFAR-10 round on this machine's NVIDIA GPU, in Winnow in
# three precisions and in eager PyTorch if it is here. It prints lines of JSON and needs no
# network and no Go; ARGS go to `winnow backend bench`.
#
# XLA's CUDA plugin is that of JAX (pip install "jax[cuda12]" or "jax[cuda13]"), looked for by
# python3; PLUGIN names another. BACKENDS replaces the list of backends.
set -euo pipefail
cd "$(dirname "$0")"

# find_plugin prints the plugin's path, then the folders of NVIDIA's libraries that pip installed.
find_plugin() {
	python3 - <<'PY'
import glob, os, site, sys, sysconfig
roots = {sysconfig.get_paths()["platlib"], sysconfig.get_paths()["purelib"], site.getusersitepackages(), *site.getsitepackages(), *sys.path}
roots = [r for r in roots if r and os.path.isdir(r)]
plugins = sorted(p for r in roots for p in glob.glob(os.path.join(r, "jax_plugins", "xla_cuda*", "xla_cuda_plugin.so")))
print(plugins[-1] if plugins else "")
print(":".join(sorted({d for r in roots for d in glob.glob(os.path.join(r, "nvidia", "*", "lib"))})))
print(next((d for r in roots for d in glob.glob(os.path.join(r, "nvidia", "cu*")) if os.path.isdir(os.path.join(d, "nvvm"))), ""))
PY
}

if [ -z "${BACKENDS:-}" ]; then
	{ read -r found; read -r libraries; read -r cuda; } < <(find_plugin) || true
	plugin=${PLUGIN:-${found:-}}
	if [ -z "$plugin" ]; then
		echo 'No CUDA plugin of XLA is here: pip install "jax[cuda12]", or set PLUGIN to xla_cuda_plugin.so.' >&2
		exit 1
	fi
	echo "plugin: $plugin" >&2
	export LD_LIBRARY_PATH="${libraries:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	if [ -n "${cuda:-}" ]; then export XLA_FLAGS="--xla_gpu_cuda_data_dir=$cuda ${XLA_FLAGS:-}"; fi
	BACKENDS="xla:$plugin,precision=tf32 xla:$plugin,precision=bf16 xla:$plugin,precision=f32"
fi
if command -v nvidia-smi >/dev/null; then nvidia-smi --query-gpu=name,driver_version --format=csv,noheader >&2 || true; fi

data=()
if [ -e data.zip ]; then data=(--data data.zip --known ship,bird,horse,deer); fi
failed=0
for backend in $BACKENDS; do
	./winnow backend bench --backend "$backend" ${data[@]+"${data[@]}"} "$@" || { echo "$backend failed" >&2; failed=1; }
done
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	python3 eager.py ${EAGER_ARGS:-}
elif [ -n "${EAGER_ARGS:-}" ]; then
	python3 eager.py $EAGER_ARGS
else
	echo 'PyTorch with CUDA is not here: nothing to compare with.' >&2
fi
exit $failed
