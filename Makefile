# SPDX-License-Identifier: MIT OR Apache-2.0
# One command for each wish; `make help` lists them. Cargo and `cargo xtask` do the work.

CARGO ?= cargo
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
# What the demonstrations run: quick to compile.
TAILBOUND = $(TARGET_DIR)/quick/tailbound
# Without database and network server, which tailbound-server has.
MACHINE = --no-default-features --features machine
# Optimised across crates, which takes minutes: what is installed and given to others.
FINAL = $(TARGET_DIR)/dist

# The demonstration: change them on the command line.
DURATION ?= 50s
LOAD ?= hackbench,memory
DEMO_OUT ?= demo.tailbound.jsonl
DEMO_ARGS ?=

# The farm of the demonstration.
FARM ?= farm-demo
NIGHTS ?= 15
PORT ?= 8787
STAY ?= yes

.DEFAULT_GOAL := help
.PHONY: help build server demo farm-demo test deps static board arm release man completions site bench install install-lib clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

build: ## the tool, for this machine: target/release/tailbound
	@scripts/deps build
	@$(CARGO) build --release -p tailbound $(MACHINE)

server: ## the program for stores and farms beside it: target/release/tailbound-server
	@scripts/deps build
	@$(CARGO) build --release -p tailbound --bin tailbound-server

demo: ## measure this machine under load for about a minute; ends with the report's path
	@scripts/deps build
	@$(CARGO) build --profile quick -p tailbound $(MACHINE)
	@scripts/deps demo
	@scripts/demo "$(TAILBOUND)" "$(DURATION)" "$(LOAD)" "$(DEMO_OUT)" $(DEMO_ARGS)

farm-demo: ## a farm on this machine: three boards in the lab, this machine, a regression found, pages to look at
	@scripts/deps build
	@$(CARGO) build --profile quick -p tailbound
	@scripts/deps demo
	@scripts/farm-demo "$(TAILBOUND)" "$(FARM)" "$(NIGHTS)" "$(PORT)" "$(STAY)"

test: ## the tests (CI also has the longest: TAILBOUND_REQUIRE=long); as root, installs the Debian packages it lacks
	@scripts/deps test
	@$(CARGO) xtask test

deps: ## only install what the tests need
	@scripts/deps test

static: ## static programs for this architecture, in dist/: tailbound and tailbound-server
	@scripts/deps static
	@$(CARGO) xtask build static

board: ## static tailbound for boards, in dist/
	@scripts/deps build
	@$(CARGO) xtask build board

arm: ## static programs for 64-bit and 32-bit ARM, in dist/
	@scripts/deps arm
	@$(CARGO) xtask build arm64 arm32

release: ## all that is given to others, in dist/: tarballs, .deb, .rpm, container, wheel, sums; minutes for each architecture
	@scripts/deps release
	@$(CARGO) xtask release

man: ## man pages, one a command, in dist/man
	@$(CARGO) xtask man

completions: ## completions for bash, zsh and fish, in dist/completions
	@$(CARGO) xtask completions

site: ## the documentation as pages for a browser, with search, in dist/site; compiles mdBook once
	@scripts/deps site
	@$(CARGO) xtask site

bench: ## what the measuring loop costs, beside other tools (root; some minutes)
	@scripts/deps bench
	@$(CARGO) build --profile dist -p tailbound $(MACHINE)
	@bench/record.sh
	@bench/cost.sh
	@bench/library.sh

install: man completions ## into $(DESTDIR)$(PREFIX); a build of its own, optimised for some minutes
	@scripts/deps build
	@$(CARGO) build --profile dist -p tailbound
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -m 755 "$(FINAL)/tailbound" "$(DESTDIR)$(PREFIX)/bin/tailbound"
	install -m 755 "$(FINAL)/tailbound-server" "$(DESTDIR)$(PREFIX)/bin/tailbound-server"
	install -m 644 dist/man/*.1 "$(DESTDIR)$(PREFIX)/share/man/man1/"
	install -d "$(DESTDIR)$(PREFIX)/share/bash-completion/completions"
	install -m 644 dist/completions/tailbound.bash \
		"$(DESTDIR)$(PREFIX)/share/bash-completion/completions/tailbound"
	install -d "$(DESTDIR)$(PREFIX)/share/zsh/site-functions"
	install -m 644 dist/completions/_tailbound "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/"
	install -d "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d"
	install -m 644 dist/completions/tailbound.fish \
		"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/"

install-lib: ## libtailbound for C and C++ into $(DESTDIR)$(PREFIX), with pkg-config and CMake files
	@scripts/deps build
	@$(CARGO) build --profile dist -p tailbound-capi
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" LIBDIR="$(LIBDIR)" scripts/install-lib "$(FINAL)"

clean: ## remove build products (target/ and dist/)
	$(CARGO) clean
	rm -rf dist
