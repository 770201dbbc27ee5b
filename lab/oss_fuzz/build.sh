#!/bin/bash -eu
# What OSS-Fuzz runs in its image: one program for each target, with the inputs that it begins with.
cd "$SRC/lease-webhook"
export PYTHONPATH=$PWD
pip3 install --require-hashes --no-deps -r requirements-test.txt
for target in $(python3 -m lab.fuzz_guided --list); do
	program=fuzz_${target//-/_}
	printf 'import sys\n\nfrom lab.fuzz_guided import fuzz\n\nfuzz("%s", sys.argv[1:])\n' "$target" >"$program.py"
	compile_python_fuzzer "$program.py" --paths . --collect-all webhook --add-data tests/data:tests/data
	python3 -m lab.fuzz_guided --target "$target" --export "$OUT/${program}_seed_corpus.zip"
done
