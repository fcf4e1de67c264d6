# Winnow. `make` or `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

# GoMLX's pure-Go backend has vectorised kernels for amd64 behind Go's simd experiment: many
# times faster. A plain `go build ./...` works everywhere, and is slow only in training.
ifeq ($(shell go env GOARCH 2>/dev/null),amd64)
export GOEXPERIMENT := simd
endif

# XLA and ONNX Runtime are loaded at run time, but their bindings are C. Without a compiler the
# program has the pure-Go backend only.
comma := ,
TAGS ?= $(if $(shell command -v $${CC:-cc}),xla$(comma)onnx)

# The race detector slows array code tenfold, so the packages that train networks run twice: with
# -race on the small cases (-short), and everything without it.
NUMERIC := ./ml/... ./jobs/... ./app/...

# GoMLX's matrix products do pointer arithmetic past a slice's end, without reading there; checkptr,
# which -race turns on, throws at it. It is off for that module alone.
RACE := -race -gcflags='github.com/gomlx/...=-d=checkptr=0'

# step prints the title of what follows, so that a failure is easy to place.
step = @printf '\n\033[1m== %s\033[0m\n' "$(1)"

.PHONY: help run build test check fmt generate screenshots bench bench-train bench-score bench-gpu bench-annotate clean \
	check-format check-vet check-lint check-generated check-tidy test-go test-browser chaos-annotate

help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ Use

run: ## Install what is missing, build, and start everything here: database, server, worker, demo
	@scripts/need.sh go $(if $(DATABASE_URL)$(DATABASE_URL_FILE),,postgres)
	@$(MAKE) --no-print-directory build
	@exec bin/winnow dev $(ARGS)

build: ## Build bin/winnow
	go build -tags '$(TAGS)' -o bin/winnow ./cmd/winnow

clean: ## Remove what was built (your data is elsewhere: winnow config says where)
	rm -rf bin out

##@ Change

fmt: ## Format Go and templ files
	go tool templ fmt -log-level error .
	go tool gofumpt -l -w .

generate: ## Regenerate views/*_templ.go from the templ files, and the reference pages of docs
	go tool templ generate -log-level error
	go test ./docs -run Page -update

screenshots: build ## Take docs/screenshots of every page anew, with the browser tests
	@scripts/need.sh postgres browser
	WINNOW_SCREENSHOTS=1 WINNOW_BIN=$(CURDIR)/bin/winnow go test -count 1 -timeout 30m -run 'TestPagesAtBothWidths|TestAnnotator$$' ./e2e

##@ Check

test: ## Everything: build, checks, unit, database and browser tests
	@scripts/need.sh go cc postgres browser
	@$(MAKE) --no-print-directory check test-go test-browser
	@printf '\nAll checks and tests passed.\n'

check: build check-format check-vet check-lint check-generated check-tidy ## What needs no test run: build, format, vet, staticcheck, generated code, go.mod

check-format:
	$(call step,gofumpt)
	@files=$$(go tool gofumpt -l .); test -z "$$files" || { echo "Not formatted (make fmt mends it):"; echo "$$files"; exit 1; }

check-vet:
	$(call step,go vet)
	@go vet ./... && go vet -tags xla,onnx ./ml/...

check-lint:
	$(call step,staticcheck)
	@go tool staticcheck ./...

# Compared with the files as they were, not with git: it holds in a tree with uncommitted work too.
check-generated:
	$(call step,generated code)
	@sums() { find . -name '*_templ.go' -not -path './.*' -exec sha256sum {} + | sort -k 2; }; \
	before=$$(sums); go tool templ generate -log-level error; \
	diff <(echo "$$before") <(sums) || { echo "The files above did not match their templ sources; they do now: commit them."; exit 1; }

check-tidy:
	$(call step,go.mod)
	@go mod tidy -diff

test-go:
	$(call step,unit and database tests with the race detector)
	@go test $(RACE) -short -p 2 -timeout 15m $$(go list ./... | grep -v '/e2e$$')
	$(call step,numeric tests in full)
	@go test -p 2 -timeout 15m $(NUMERIC)
	$(if $(TAGS),$(call step,the same networks on ONNX Runtime$(comma) where its library is))
	$(if $(TAGS),@go test -p 2 -timeout 15m -tags onnx -run 'ONNX|PyTorch|TestConvolution|TestDown|TestNorm' ./ml/backend ./ml/nn ./ml)

test-browser: build
	$(call step,browser tests)
	@WINNOW_BIN=$(CURDIR)/bin/winnow go test -count 1 -timeout 15m ./e2e/...

chaos-annotate: build ## 100 annotators label while servers are killed and networks cut, then a recount: 4 minutes; SEED= reruns
	@scripts/need.sh go postgres
	@WINNOW_BIN=$(CURDIR)/bin/winnow go test ./e2e/chaos -count 1 -timeout 15m -v -run 'TestChaos$$' -full -seed $(or $(SEED),0)

##@ Measure

bench-annotate: build ## Labeling: key press to next image in Chromium, and 100 annotators over HTTP in a pool of a million; prints JSON
	@scripts/need.sh postgres browser
	@export WINNOW_BIN=$(CURDIR)/bin/winnow; \
	keypress=$$(go test ./e2e -run '^$$' -bench KeypressToNextImage -benchtime 300x | grep '^{'); \
	http=$$(go test ./e2e/chaos -run '^$$' -bench Annotators -benchtime 1x -timeout 20m | grep '^{'); \
	printf '{"keypress": %s, "http": %s}\n' "$$keypress" "$$http"

bench-train: ## Training and scoring on each backend that is present, and on PyTorch if it is: images/s, times pure Go
	@go test -tags '$(TAGS)' ./ml/nn -run '^$$' -bench 'TrainStep|Infer' -benchtime 6x | awk '/images\/s/ { \
		split($$1, n, "/"); kind = n[1] n[3]; sub(/-[0-9]+$$/, "", kind); \
		if (!(kind in base)) base[kind] = $$(NF-1); \
		printf "%-40s %8.0f images/s %6.2f\n", $$1, $$(NF-1), $$(NF-1) / base[kind] } /FAIL|---/'
	@if python3 -c 'import torch' 2>/dev/null; then cd ml/nn/testdata && python3 bench.py; \
		else echo 'PyTorch is not here (Debian: python3-torch)'; fi

bench-score: build ## One round's scoring by 1, 2 and 4 workers; WINNOW_SCORE_IMAGES and WINNOW_BACKEND say of what, on what
	@WINNOW_BIN=$(CURDIR)/bin/winnow go test ./e2e -run '^$$' -bench ScorePool -benchtime 1x -timeout 60m

bench-gpu: ## Pack out/bench-gpu.tar.gz to time a round on a machine with a GPU; DATA=cifar10.zip puts images in
	@scripts/need.sh go cc
	@rm -rf out/bench-gpu && mkdir -p out/bench-gpu
	go build -tags xla -o out/bench-gpu/winnow ./cmd/winnow
	cp scripts/bench_gpu/run.sh scripts/bench_gpu/eager.py ml/nn/testdata/pytorch.py out/bench-gpu/
	$(if $(DATA),cp '$(DATA)' out/bench-gpu/data.zip)
	tar -C out -czf out/bench-gpu.tar.gz bench-gpu
	@echo 'out/bench-gpu.tar.gz: unpack it on the machine with the GPU and run bench-gpu/run.sh (docs/gpu.md)'

bench: ## Run the benchmarks of all packages (docs/benchmarks.md has the figures)
	go test -run '^$$' -bench . -benchmem $(or $(PACKAGES),./...)
