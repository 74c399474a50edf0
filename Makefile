# Two commands do everything on a fresh Debian or Ubuntu: `make demo` and `make test`. All of it lands in build/.
#
#   make demo    installs what is missing, builds, runs the built-in suite and shows its result
#   make test    installs what is missing, builds with the tests, runs those that are not labelled slow: 10 minutes on 2 cores
#   make test-all   runs those, too: 20 minutes
#   make build   only builds: the program is build/mtil
#   make test-cluster   sweeps on a Slurm of one node that it starts (slurm-wlm and munge are installed if missing)
#   make crash   kills the program at 200 random instants and at every call that writes, and lets those calls fail: an hour;
#                SEED=N repeats the instants, KILLS=N and CALLS=N try fewer
#   make test-systems   make demo, make test and the package in bare roots of Debian 12 and 13, a build for 64-bit Arm, a wheel on
#                Debian 11 and 13, as root;
#                SYSTEMS="trixie sid": in these
#   make test-report    opens a report in headless Chromium (chromium is installed if missing)
#   make install    builds and installs, into /usr/local or prefix=FOLDER; DESTDIR=ROOT puts all of it below another root
#   make uninstall  removes what make install puts there, with the same prefix and DESTDIR
#   make package    installs what is missing, builds, makes a Debian package in build/package
#   make wheel   makes a wheel for other systems in build/wheel, in a bare root of Debian 11, as root: half an hour, then minutes
#   make clean   removes build/
#
# FLAGS are given to CMake: make build FLAGS="-DMTIL_WERROR=ON"
BUILD := build
FLAGS :=
prefix := /usr/local
CONFIGURE = $(FRESH); cmake -S . -B $(BUILD) -G Ninja

# CMake refuses a build folder that was copied or moved; what it knows of the other place goes.
CACHE = $(BUILD)/CMakeCache.txt
of_cache = "$$(sed -n 's/^$1:INTERNAL=//p' $(CACHE))"
FRESH = if [ -e $(CACHE) ] && ! { [ $(call of_cache,CMAKE_HOME_DIRECTORY) -ef . ] && \
	[ $(call of_cache,CMAKE_CACHEFILE_DIR) -ef $(BUILD) ]; }; then \
	echo "$(BUILD)/ was configured elsewhere, in "$(call of_cache,CMAKE_CACHEFILE_DIR)": it is configured afresh."; \
	rm -rf $(CACHE) $(BUILD)/CMakeFiles $(BUILD)/build.ninja; fi

# Why a toolkit that is there is not used; nothing where there is none.
SAY_CUDA := [ ! -s $(BUILD)/no-cuda ] || { echo "The CUDA backend is not built: $$(cat $(BUILD)/no-cuda)."; }

# Slow tests, and those of the CUDA kernels on the CPU.
LONG := ^(slow|cuda_on_host)$$

.PHONY: demo test test-all test-cluster test-systems test-report crash install uninstall package wheel build build-tests dependencies clean

demo: dependencies build
	$(BUILD)/mtil data mini $(BUILD)/demo/data
	$(BUILD)/mtil run mini data.root=$(BUILD)/demo/data run.folder=$(BUILD)/demo/runs run.database=$(BUILD)/demo/results.db \
		run.cache_folder=$(BUILD)/demo/cache --backend cpu

test: TESTS = --label-exclude '$(LONG)'
test test-all: dependencies build-tests
	@$(if $(TESTS),left=$$(ctest --test-dir $(BUILD) -N -L '$(LONG)' | sed -n 's/^Total Tests: //p');) \
		ctest --test-dir $(BUILD) --output-on-failure --parallel $$(($$(nproc) + 2)) $(TESTS) \
		$(if $(TESTS),&& echo "Left out: $$left tests labelled slow or cuda_on_host; make test-all runs them.")

# 77: skipped, it said why.
test-cluster: dependencies build
	tests/cluster/test_cluster.sh $(BUILD)/mtil || [ $$? -eq 77 ]

test-systems:
	@cmake/install-dependencies --installation
	@tests/systems/systems.sh . $(SYSTEMS) || [ $$? -eq 77 ]

test-report: dependencies build-tests
	@cmake/install-dependencies --browser
	@tests/results/python.sh tests/results/report/check_report.py $(BUILD)

crash: SEED := $(shell date +%s)
crash: export MTIL_CRASH_SEED = $(SEED)
crash: export CUDA_VISIBLE_DEVICES = -1
crash: KILLS := 200
crash: CALLS := 0
crash: dependencies build-tests
	MTIL_CRASH_KILLS=$(KILLS) $(BUILD)/tests/crashes kills
	MTIL_CRASH_FAULTS=$(CALLS) $(BUILD)/tests/crashes write_faults

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

wheel:
	@cmake/install-dependencies --wheel
	@cmake/wheel . $(BUILD)/wheel "$(FLAGS)"

build:
	@$(CONFIGURE) -DMTIL_TESTS=OFF $(FLAGS) || { cmake/install-dependencies --missing; exit 1; }
	cmake --build $(BUILD)
	@$(SAY_CUDA)

build-tests:
	@$(CONFIGURE) -DMTIL_TESTS=ON $(FLAGS) || { cmake/install-dependencies --missing; exit 1; }
	cmake --build $(BUILD)
	@$(SAY_CUDA)

dependencies:
	@cmake/install-dependencies

clean:
	rm -rf $(BUILD)
