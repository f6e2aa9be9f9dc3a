# Thin verbs over meson and the scripts in tools/. Each is a line in docs/HACKING.md.
BUILD ?= build
PREFIX ?= /usr/local
ARGS ?= run examples/hello.yaml --data-dir $(BUILD)/data
SEEDS ?= 2000
SECONDS ?= 60

.PHONY: all help run test check bench sim soak fuzz tidy fmt asan tsan install clean setup setup-test

all: setup
	@tools/build $(BUILD) -Dtests=false

# The table of the verbs in docs/HACKING.md, as text.
help:
	@sed -n 's/^| `\(make[^`]*\)` | \(.*\) |$$/\1|\2/p' docs/HACKING.md | tr -d '`' | \
		sed 's/: see .*//' | awk -F'|' '{ printf "%-22s %s\n", $$1, $$2 }'
	@echo "More about them: docs/HACKING.md"

setup:
	@tools/setup build

setup-test:
	@tools/setup test

run: all
	@GLIA_DATA_DIR="$${GLIA_DATA_DIR:-$(abspath $(BUILD))/data}" $(BUILD)/glia $(ARGS)

test: setup-test
	@tools/test $(T)

check: setup-test
	@tools/test check

bench: setup-test all
	@$(if $(STORE),bench/stores $(BUILD) --store $(STORE),bench/run $(BUILD))

sim: all
	@$(BUILD)/glia-sim $(if $(SEED),--seed $(SEED),--seeds $(SEEDS))

soak: setup-test all
	@tools/soak $(BUILD) $(DURATION)

fuzz: setup-test
	@tools/test --seconds $(SECONDS) fuzz

tidy: setup-test all
	@tools/tidy --build $(BUILD)

fmt: setup-test
	@git ls-files '*.c' '*.h' | xargs clang-format -i

asan: setup-test
	@tools/test unit contract scenario

tsan: setup-test
	@tools/test threaded

install: setup
	@tools/build $(BUILD) -Dtests=false --prefix $(PREFIX)
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD) --no-rebuild --quiet
	@echo "installed to $(DESTDIR)$(PREFIX); documents, examples and the Python client: share/doc/glia"

clean:
	@rm -rf $(BUILD) build-test
