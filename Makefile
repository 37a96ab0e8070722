# The only door: people and CI use the same targets.

PYTHON ?= python3
RUN := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench oracle guide guide-eval

help:  ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup:  ## make .venv and wheelhouse/, with what they need from the system
	@$(PYTHON) -m tools.setup

demo: setup  ## start a daemon, show its devices, ask it a question
	@$(RUN) tools/demo.py

test: setup  ## run every test
	@$(RUN) -m pytest
