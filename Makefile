# Two commands do everything on a fresh Debian or Ubuntu: `make demo` and `make test`. All of it lands in build/.
#
#   make demo    installs what is missing, builds, runs the built-in suite and shows its result
#   make test    installs what is missing, builds with the tests, runs those that are not labelled slow: 10 minutes on 2 cores
#   make test-all   runs those, too: 20 minutes
#   make build   only builds: the program is build/mtil
#   make test-cluster   sweeps on a Slurm of one node that it starts (slurm-wlm and munge are installed if missing)
#   make crash   kills the program at 200 random instants and at every call that writes, and lets those calls fail: an hour;
#                SEED=N repeats the instants
#   make test-report    opens a report in headless Chromium (chromium is installed if missing)
#   make install    builds and installs, into /usr/local or prefix=FOLDER; DESTDIR=ROOT puts all of it below another root
#   make uninstall  removes what make install puts there, with the same prefix and DESTDIR
#   make package    installs what is missing, builds, makes a Debian package in build/package
#   make clean   removes build/
#
# FLAGS are given to CMake: make build FLAGS="-DMTIL_WERROR=ON"
BUILD := build
FLAGS :=
prefix := /usr/local
CONFIGURE := cmake -S . -B $(BUILD) -G Ninja

# Slow tests, and those of the CUDA kernels on the CPU.
LONG := ^(slow|cuda_on_host)$$

.PHONY: demo test test-all test-cluster test-report crash install uninstall package build build-tests dependencies clean

demo: dependencies build
	$(BUILD)/mtil data mini $(BUILD)/demo/data
	$(BUILD)/mtil run mini data.root=$(BUILD)/demo/data run.folder=$(BUILD)/demo/runs run.database=$(BUILD)/demo/results.db \
		run.cache_folder=$(BUILD)/demo/cache --backend cpu

test: TESTS = --label-exclude '$(LONG)'
test test-all: dependencies build-tests
	@ctest --test-dir $(BUILD) --output-on-failure --parallel $$(($$(nproc) + 2)) $(TESTS)
	@$(if $(TESTS),echo "Left out: $$(ctest --test-dir $(BUILD) -N -L '$(LONG)' | sed -n 's/^Total Tests: //p') tests labelled slow or \
	cuda_on_host; make test-all runs them.")

# 77: skipped, it said why.
test-cluster: dependencies build
	tests/cluster/test_cluster.sh $(BUILD)/mtil || [ $$? -eq 77 ]

test-report: dependencies build-tests
	@cmake/install-dependencies --browser
	@tests/results/python.sh tests/results/report/check_report.py $(BUILD)

crash: SEED := $(shell date +%s)
crash: export MTIL_CRASH_SEED = $(SEED)
crash: export CUDA_VISIBLE_DEVICES = -1
crash: dependencies build-tests
	MTIL_CRASH_KILLS=200 $(BUILD)/tests/crashes kills
	MTIL_CRASH_FAULTS=0 $(BUILD)/tests/crashes write_faults

install: build
	DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(abspath $(prefix))"

# Files are those that an installation puts elsewhere now; folders go where they are the program's own and empty.
uninstall:
	@stage=$$(mktemp -d) && trap 'rm -rf "$$stage"' EXIT && root=$$(cd "$(DESTDIR)/" && pwd) && \
		DESTDIR="$$stage" cmake --install $(BUILD) --prefix "$(abspath $(prefix))" >/dev/null && cd "$$stage" && \
		find . ! -type d -print0 | (cd "$$root" && xargs -0 rm -fv) && \
		find . -depth -type d -path '*mtil*' -print0 | \
			(cd "$$root" && xargs -0 rmdir --ignore-fail-on-non-empty 2>/dev/null || true)

package: dependencies build
	@cmake/install-dependencies --package
	cpack --config $(BUILD)/CPackConfig.cmake

build:
	@$(CONFIGURE) -DMTIL_TESTS=OFF $(FLAGS) || { cmake/install-dependencies --missing; exit 1; }
	cmake --build $(BUILD)

build-tests:
	@$(CONFIGURE) -DMTIL_TESTS=ON $(FLAGS) || { cmake/install-dependencies --missing; exit 1; }
	cmake --build $(BUILD)

dependencies:
	@cmake/install-dependencies

clean:
	rm -rf $(BUILD)
