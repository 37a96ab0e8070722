# Developers and CI use the same targets.

PYTHON ?= python3
RUN := .venv/bin/python
SOURCES := $(wildcard daemon/src plugins/*/src bindings/python tui/src tools bench examples guide tests)
NATIVE = $(shell git ls-files --cached --others --exclude-standard 'plugins/*/csrc/*.cpp' 'plugins/*/csrc/*.hpp' 'plugins/*/src/*/kernels/*.cu' 'plugins/*/src/*/kernels/*.cuh' 'plugins/*/src/*/kompute/*.hpp' 'tests/cuda/*.cpp' 'tests/cuda/*.hpp' 'bench/*.cpp' 'bench/*.h' 'bindings/*.c' 'bindings/*.h' 'bindings/*.cpp' 'bindings/*.hpp' 'tests/bindings/*.c')

.DEFAULT_GOAL := help
.PHONY: help setup demo test-setup test test-full check docs format bindings stubs release bench bench-cpu bench-serve bench-starts gpu-check pictures oracle oracle-llama-cpp guide guide-continue guide-eval

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup:  ## install missing system packages; create .venv with llmd, and wheelhouse/ to install it elsewhere
	@$(PYTHON) -m tools.system_packages run
	@$(PYTHON) -m tools.setup run

demo: setup  ## start a daemon, show its devices, ask it two questions
	@$(RUN) tools/demo.py

test-setup:  ## install what tests need in addition: emulators, clients and samples of other projects
	@$(PYTHON) -m tools.system_packages test
	@$(PYTHON) -m tools.setup test

test: test-setup  ## run the tests on all cores
	@$(RUN) -m pytest --numprocesses auto --dist worksteal

test-full: test-setup  ## run the tests, including the exhaustive ones that `make test` skips
	@$(PYTHON) -m tools.system_packages exhaustive
	@LLMD_TEST_SCHEDULES=500 $(RUN) -m pytest --numprocesses auto --dist worksteal -m ""

check: test-setup  ## check formatting, lint, types, imports, sizes, mirrors, names and documentation; run no tests
	@$(RUN) -m ruff format --check --quiet .
	@$(RUN) -m ruff check --quiet .
	@.venv/bin/clang-format --dry-run --Werror $(NATIVE)
	@$(RUN) -m tools.native_warnings g++
	@$(RUN) -m mypy --no-error-summary $(SOURCES)
	@PYTHONPATH=plugins/backend_cuda/src:plugins/backend_vulkan/src .venv/bin/lint-imports --no-logo
	@$(RUN) -m tools.sizes
	@$(RUN) -m tools.mirrors
	@$(RUN) -m tools.names
	@$(MAKE) --silent docs

docs: setup  ## build the documentation site in build/docs; warnings are errors
	@$(RUN) -m sphinx --quiet --fail-on-warning --keep-going --fresh-env --jobs auto --conf-dir tools/docs --doctree-dir build/docs/.doctrees . build/docs

format: setup  ## fix what tools can fix of the findings of `make check`
	@$(RUN) -m ruff check --quiet --fix-only .
	@$(RUN) -m ruff format --quiet .
	@.venv/bin/clang-format -i $(NATIVE)

bindings:  ## build the C library libllmd in bindings/c/build
	@$(MAKE) --silent --directory=bindings/c

stubs: setup  ## regenerate the type stubs of the extension
	@$(RUN) -m nanobind.stubgen --module llmd_backend_cpu._ext --output-dir plugins/backend_cpu/src/llmd_backend_cpu

release: test-setup .venv-release/.made  ## build and try all files of a release in dist/VERSION; uploads nothing
	@$(PYTHON) -m tools.system_packages exhaustive
	@$(RUN) -m tools.release $(OPTIONS)

bench: bench-cpu bench-serve bench-starts  ## run all comparisons with llama.cpp

bench-cpu: setup $(if $(PEER_DIR),,.bench-llama-cpp/.made)  ## compare the CPU backend with llama.cpp, or with the fork built in PEER_DIR; OPTIONS="SHAPE --profile full"
	@$(RUN) -m $(if $(PEER_DIR),bench.second_peer $(PEER_DIR),bench.cpu) $(OPTIONS)

bench-serve: setup .bench-llama-cpp/.made  ## compare the daemon with llama.cpp's server under load; OPTIONS="SHAPE --rounds 5"
	@$(RUN) -m bench.serving $(OPTIONS)

bench-starts: setup .bench-llama-cpp/.made  ## compare start times with llama.cpp's server; OPTIONS="SHAPE --pairs file:Q4_0"
	@$(RUN) -m bench.starts $(OPTIONS)

gpu-check: setup  ## check and measure a card; OPTIONS="--device cuda:0 --rounds 5", or "--device shim" without a card
	@$(RUN) -m bench.gpu_check $(OPTIONS)

pictures: setup  ## make the pictures of docs/tui.md, in a real terminal over a real daemon
	@$(PYTHON) -m tools.system_packages exhaustive
	@LLMD_UPDATE_PICTURES=1 $(RUN) -m pytest --quiet -m "" tests/terminal

oracle: .venv-oracle/.made .venv-tokenizers/.made  ## recompute the goldens with torch and transformers, and compare
	@.venv-oracle/bin/python -m tests.golden.oracle.make_oracle
	@.venv-oracle/bin/python -m tests.golden.oracle.check_multimodal
	@.venv-oracle/bin/python -m tests.golden.oracle.make_beams
	@.venv-oracle/bin/python -m tests.golden.oracle.make_sentences
	@.venv-oracle/bin/python -m tests.golden.oracle.make_ranking
	@.venv-oracle/bin/python -m tests.golden.templates.generate
	@.venv-tokenizers/bin/python -m tests.golden.tokenizers.generate

oracle-llama-cpp: setup .bench-llama-cpp/.made  ## compare logits with llama.cpp's on GGUF files of every family
	@$(RUN) -m tests.golden.oracle.check_llama_cpp

guide: .venv-guide/.made  ## train the built-in model from scratch
	@.venv-guide/bin/python -m guide.train

guide-continue: .venv-guide/.made  ## continue training the built-in model from its committed weights
	@.venv-guide/bin/python -m guide.train --continue

guide-eval: setup  ## score the built-in model on held-out questions
	@$(RUN) -m guide.evaluate

# The dependencies of torch, transformers and llama.cpp stay out of the workspace. pip, not uv: pip respects
# the machine's find-links.
.venv-oracle/.made: tests/golden/oracle/requirements.txt
.venv-tokenizers/.made: tests/golden/tokenizers/requirements.txt
.venv-guide/.made: guide/requirements.txt
.venv-bench/.made: bench/requirements.txt
.venv-release/.made: tools/release/requirements.txt
# Only the Python part of llama-cpp-python: its library is built below, as each measurement needs it.
.venv-bench/.made: export CMAKE_ARGS = -DLLAMA_BUILD=OFF
.venv-oracle/.made .venv-tokenizers/.made .venv-guide/.made .venv-bench/.made .venv-release/.made:
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/pip install -qq --requirement $<
	@touch $@

# llama.cpp for each instruction set, and its server, built with the workspace's cmake and ninja.
.bench-llama-cpp/.made: bench/requirements.txt bench/llama_cpp_build.py bench/llama_cpp_source.py bench/amx_tile_config.h | .venv-bench/.made
	@PATH="$(CURDIR)/.venv/bin:$$PATH" .venv-bench/bin/python -m bench.llama_cpp_build $(@D)
	@touch $@
