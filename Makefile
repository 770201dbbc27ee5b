# `make` alone lists what there is. Every target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEV := $(VENV)/.ready-dev
# Images set this variable for Python; without bytecode every process of the tests would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=
TOOL := $(BIN)/python -m tools
# Where the packages `tools` and `lab` are.
export PYTHONPATH := $(CURDIR)
LOCK := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.DEFAULT_GOAL := help
.PHONY: help setup run test draw coverage lab outputs check static docs site model truth histories spec torture planted elector-kit fuzz fuzz-guided page mutation evidence e2e law fuzz-leases fence fleet outside cluster kind image record record-attacks record-incidents causes bench reading fast-paths servers verdicts hour faults programs pictures fmt certs manifests derived version package krew pex workflows sbom audit dist rehearsal lock clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | LC_ALL=C sort -t: -k1,1 | awk -F ':.*## ' '{ \
		line = sprintf("  make %-17s", $$1); count = split($$2, words, " "); \
		for (i = 1; i <= count; i++) { \
			if (length(line words[i]) > 79) { print line; line = sprintf("%24s", "") } \
			line = line " " words[i] \
		} \
		print line \
	}'

# The lock files are whole, so nothing is to be resolved.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps

$(READY): requirements-test.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	@# Most modules of these packages are never imported, and those that are get compiled then: half the time.
	$(INSTALL) --no-compile -r requirements-test.txt
	@# The warning is about folders named as the package; ours are the package.
	PYTHONWARNINGS="ignore:Editable installation" \
		$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(DEV): $(READY) requirements-dev.txt
	$(INSTALL) --no-compile -r requirements-dev.txt
	@touch $@

setup: $(DEV) ## a virtual environment with the locked packages

run: $(READY) certs ## make certificates and serve on https://127.0.0.1:8443
	@echo 'An example of a timeline: $(BIN)/lease-webhook timeline --example -o lease-timeline.html; open it in a browser'
	$(BIN)/lease-webhook serve

certs: $(READY) ## make or renew the certificates in certs/
	@$(BIN)/lease-webhook certs

test: $(READY) ## the tests (five minutes on two cores); RULE=takeover-before-expiry, FINDING=lease-stolen: those of one, in a minute
	@# One more than cores: tests of the server wait for most of their time.
	$(if $(RULE),$(BIN)/python -m tests.one_rule $(RULE),$(if $(FINDING),$(BIN)/python -m tests.one_finding $(FINDING),\
		$(BIN)/pytest --numprocesses=3 --dist=worksteal))

draw: $(READY) ## the property tests with new examples
	DRAW=1 $(BIN)/pytest --numprocesses=3 --dist=worksteal -m hypothesis

coverage: $(DEV) ## branch coverage of all but the server and the commands, which must be 100 % (ten minutes)
	$(BIN)/pytest --numprocesses=2 --dist=worksteal -m "not deep and not uncounted" --cov --cov-report=term

model: $(READY) ## search deeper for traces that break a law (five minutes); SHORT=1: only what make test leaves out
	$(if $(SHORT),,LEASE_MODEL_DEPTH=1) $(BIN)/pytest --numprocesses=2 --dist=worksteal \
		-m $(if $(SHORT),deep,"deep or not deep") tests/model tests/rule_policies

law: $(READY) ## play histories with us and without: an honest write that is stored without us must be stored (LAW="--histories 10000")
	$(BIN)/python -m tests.law $(LAW)

truth: $(READY) ## evaluate every claim on random histories with known truth: COUNT=500 SEED=1 INPUT=watch STORE=FOLDER RESULTS=1
	$(BIN)/python -m tests.truth --count $(or $(COUNT),500) --first $(or $(SEED),1) $(if $(INPUT),--input "$(INPUT)") \
		$(if $(STORE),--store $(STORE)) $(if $(RESULTS),--results)

histories: $(READY) ## what commands say of every stored and recorded history by every input, and planted defects (five minutes)
	$(BIN)/pytest --numprocesses=2 --dist=worksteal -m deep tests/truth tests/timeline tests/claims tests/cli tests/live

spec: $(READY) ## check the specification by TLC and Z3 (Java; three minutes): SPEC=--docs writes what it found into docs/; SHORT=1: a third
	$(BIN)/python -m lab.spec $(if $(SHORT),--short) $(SPEC)

torture: $(READY) ## electors of four languages while everything fails (Go, Java, Rust): SEEDS=1,2 MINUTES=10 TORTURE=--without; SHORT=1: two minutes
	$(BIN)/python -m lab.torture --minutes $(or $(MINUTES),$(if $(SHORT),1,10)) $(if $(SEEDS),--seeds $(SEEDS)) $(TORTURE)

planted: $(READY) ## plant defects in a copy of the tree, and write into docs/proof.md what notices them (an hour)
	$(BIN)/python -m lab.torture.planted $(PLANTED)

elector-kit: $(READY) ## what recorded electors do wrong on a real API server, into docs/electors.md by KIT=--results (five minutes)
	$(BIN)/python -m lab.elector_kit $(KIT)

fuzz: $(READY) ## 200,000 streams of bytes against the HTTP of the server (four minutes); SHORT=1: 20,000
	$(BIN)/python -m lab.fuzz --count $(if $(SHORT),20000,200000) $(if $(SEED),--seed $(SEED))

fuzz-guided: $(READY) ## inputs that learn which lines they run, by atheris (Linux; a minute each): TARGET=reviews SECONDS=600 SEED=1 RUNS= KEEP=1
	$(INSTALL) -r requirements-fuzz.txt
	$(BIN)/python -m lab.fuzz_guided $(if $(TARGET),--target $(TARGET)) $(if $(SECONDS),--seconds $(SECONDS)) \
		$(if $(RUNS),--runs $(RUNS)) $(if $(SEED),--seed $(SEED)) $(if $(KEEP),--keep)

page: $(READY) web ## the pages of timelines and of make web in a browser, four minutes (Debian's chromium; npm, once)
	$(INSTALL) -r lab/page/requirements.txt
	$(BIN)/pytest --numprocesses=2 --dist=worksteal --override-ini=addopts=--strict-markers $(if $(ONLY),-k "$(ONLY)") lab/page

mutation: $(DEV) ## change the rules in two thousand ways and list the changes that no test notices (ten minutes)
	$(INSTALL) -r requirements-mutation.txt
	$(BIN)/mutmut run --max-children 2
	$(BIN)/mutmut results

check: static test coverage ## everything a reviewer would check

evidence: $(READY) ## forge stamps through the API server's field manager, eight minutes (Go); SHORT=1: one or two
	$(BIN)/python -m lab.evidence $(if $(SHORT),--short) $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(COUNT),--count $(COUNT)) $(if $(ONLY),--only $(ONLY)) $(if $(SHORT)$(ONLY),,--results)

e2e: $(READY) ## on real API servers with real clients (Go builds them once; then 20 minutes)
	$(BIN)/python -m lab.e2e $(E2E)

fuzz-leases: $(READY) ## random lists, times and sizes against live leases on real API servers: FUZZ="--seed 1 --steals 1000"
	$(BIN)/python -m lab.e2e.fuzz_leases $(FUZZ)

outside: $(READY) ## the term of a lease in PostgreSQL and Redis, with old leaders (two minutes)
	$(BIN)/python -m lab.outside $(OUTSIDE)

fleet: $(READY) ## the SQL of docs/examples/fleet in DuckDB, ClickHouse and Spark against why (Java): FLEET="--events 10000000"
	$(INSTALL) -r lab/fleet/requirements.txt
	$(BIN)/python -m lab.fleet $(FLEET)

fence: $(READY) ## old leaders against a fence, on real API servers, into docs/fence-figures.md (15 minutes)
	$(BIN)/python -m lab.e2e.fence $(FENCE)

cluster: $(READY) ## real pods: on KUBECONFIG with IMAGE=, or as root on a node of its own (15 to 30 minutes); SHORT=1: 5 minutes
	$(BIN)/python -m lab.cluster $(if $(SHORT),--short) $(if $(IMAGE),--image=$(IMAGE)) $(CLUSTER)

kind: $(READY) ## five minutes: a cluster of kind with the webhook, an election that breaks, a steal (kind, docker, kubectl)
	deploy/kind $(STEPS)

image: $(READY) ## build the image twice by buildah without a daemon and compare (root, Debian)
	$(BIN)/python -m lab.cluster.image

record: $(READY) ## record the reviews of real clients again: make record KUBERNETES=v1.36
	$(BIN)/python -m lab.e2e.record --kubernetes=$(KUBERNETES) $(if $(INTO),--into=$(INTO))

record-attacks: $(READY) ## play the standing attacks again and keep their reviews: make record-attacks KUBERNETES=v1.36
	$(BIN)/python -m lab.e2e.record_attacks --kubernetes=$(KUBERNETES) $(if $(ONLY),--only $(ONLY))

record-incidents: $(READY) ## play incidents of elections and keep a watch and an audit log of each (3 minutes): KUBERNETES=v1.37
	$(BIN)/python -m lab.e2e.incidents $(if $(KUBERNETES),--kubernetes=$(KUBERNETES)) $(if $(ONLY),--only $(ONLY)) \
		$(if $(INTO),--into=$(INTO))

causes: $(READY) ## induce each cause of a silence twenty times, and ask `why`, into docs/incidents.md (20 minutes): SEED=27
	$(BIN)/python -m lab.e2e.incidents.cause_matrix $(if $(SEED),--seed=$(SEED)) $(if $(ONLY),--only $(ONLY))
	$(TOOL).docs

programs: $(READY) ## build whatever the slower suites run, ten to twenty minutes once (Go): PROGRAMS=--first, --rest
	$(BIN)/python -m lab.programs $(PROGRAMS)

.PHONY: web web-costs pyodide
web: $(READY) ## the page that runs lease-webhook in a browser, as a folder for any file server: build/web/page (npm, node)
	$(TOOL).web

web-costs: $(READY) web ## what the page of make web costs in Chromium, into docs/browser.md (five minutes)
	$(INSTALL) -r lab/page/requirements.txt
	$(BIN)/python -m lab.page.web.costs

pyodide: $(READY) ## the core's tests and every stored output in Pyodide's Python 3.14 (node, npm; two minutes); SHORT=1: half
	$(BIN)/python -m lab.pyodide $(if $(SHORT),--short) $(PYODIDE)

outputs: $(READY) ## compare the output of every command on every recorded input with the stored one; UPDATE=1 stores it
	$(BIN)/python -m lab.outputs $(if $(UPDATE),--update) $(if $(ONLY),--only "$(ONLY)")

lab: $(READY) ## the tests of the lab: its laws and counts, and that its pages show what it measured (half a minute)
	$(BIN)/pytest lab/tests

static: $(DEV) ## format, lint, spelling, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY) ## what a review costs beside peers, 15 minutes; SHORT=1: 4 minutes
	$(BIN)/python -m lab.bench $(if $(SHORT),--short) $(foreach table,$(ONLY),--only $(table))

reading: $(READY) ## what the commands cost for large inputs, into docs/figures.md (three minutes)
	$(BIN)/python -m lab.reading_costs

servers: $(READY) ## ten kinds of hostile clients against the servers of Python, into docs/design.md (six minutes)
	$(INSTALL) -r lab/servers/requirements.txt
	$(BIN)/python -m lab.servers

verdicts: $(READY) ## answer random reviews in every way that the code has, and compare the bytes: COUNT=1000000 (ten minutes) SEED=1
	$(BIN)/python -m lab.verdicts $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED))

fast-paths: $(READY) ## what each fast path of docs/design.md saves, into that page (half a minute)
	$(BIN)/python -m lab.fast_paths

hour: $(READY) ## the live timeline over an hour of 1,000 renewals a second, into docs/figures.md (ten minutes)
	$(BIN)/python -m lab.hour $(HOUR)

faults: $(READY) ## break things under load, 15 minutes; SHORT=1: 4 minutes
	$(BIN)/python -m lab.faults $(if $(SHORT),--short) $(foreach fault,$(ONLY),--only $(fault))

pictures: $(READY) ## draw the pictures of elections and of the dashboard again (Debian's chromium)
	$(INSTALL) -r lab/page/requirements.txt
	$(TOOL).docs.pictures
	$(BIN)/python -m lab.cluster.dashboard

docs: $(READY) ## write what the pages take from the code: rule pages, tables, output of commands
	$(TOOL).docs

site: $(DEV) ## the documentation as a site with a search, in build/site/html, which fetches nothing from elsewhere; URL= links to the repository
	$(INSTALL) -r requirements-site.txt
	$(TOOL).site $(if $(URL),--url=$(URL))

fmt: $(DEV) ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

manifests: $(READY) certs ## examine every overlay with its components, and try the alerts (Go, or kubectl and promtool; groff)
	$(BIN)/pytest --numprocesses=2 --dist=worksteal --override-ini=addopts=--strict-markers lab/rendered

derived: $(READY) certs ## bring the Helm chart and `lease-webhook install` up to date with deploy/
	$(TOOL).rendered.pieces

# Who publishes: the repository's address, such as URL=https://git.example/platform/lease-webhook, for links and Krew.
URL ?=
RELEASE := $(INSTALL) -r requirements-release.txt

version: $(READY) ## the version, if all that names it agrees; TAG= must name it too; SET= writes it everywhere
	@$(TOOL).release.version $(if $(TAG),--tag=$(TAG)) $(if $(SET),--set=$(SET))

package: $(DEV) ## build wheel and source distribution; try them with every supported Python here, pipx and uvx
	$(RELEASE)
	$(TOOL).release.package $(if $(URL),--url=$(URL))

krew: package ## the kubectl plugin for Krew: archives and manifest in dist/; needs URL=
	$(if $(URL),,$(error make krew needs URL=, the address of the repository))
	$(TOOL).release.krew --url=$(URL)

pex: package ## the commands as one executable file, dist/lease-webhook.pex, which needs only Python
	$(TOOL).release.pex

workflows: $(DEV) ## examine the workflows (zizmor), without asking anybody
	$(RELEASE)
	$(BIN)/zizmor --offline --quiet .github action.yml

sbom: $(READY) ## what the server and the image of `make image` consist of, as CycloneDX in dist/
	$(RELEASE)
	@mkdir -p dist
	$(TOOL).release.bill
	$(TOOL).release.image_sbom $(if $(ARCHIVE),--archive=$(ARCHIVE))

audit: $(READY) ## known vulnerabilities of every locked package that runs in production; REQUIRED=1: never skip
	$(RELEASE)
	$(TOOL).release.advisories $(if $(REQUIRED),--required)

dist: package sbom pex $(if $(URL),krew) ## what a release consists of, in dist/, with checksums; IMAGE= for manifests with that image
	$(TOOL).rendered.chart dist $(if $(URL),--url=$(URL)) $(if $(IMAGE),--image=$(IMAGE))
	$(if $(IMAGE),for certificate in cert-manager openshift; do $(BIN)/lease-webhook install \
		--certificate $$certificate --image $(IMAGE) > dist/install-$$certificate.yaml || exit 1; done)
	cd dist && rm -f SHA256SUMS && sha256sum * > SHA256SUMS

rehearsal: $(DEV) ## a release of this commit as a dry run: made twice, compared, signed, verified; in build/rehearsal (Go; five minutes)
	$(RELEASE)
	$(TOOL).release.rehearse $(if $(URL),--url=$(URL))

lock: $(DEV) ## pin the packages again, by hash
	$(LOCK) --output-file requirements.txt requirements.in
	$(LOCK) --output-file requirements-test.txt requirements-test.in
	$(LOCK) --output-file requirements-dev.txt requirements-dev.in
	$(LOCK) --output-file requirements-mutation.txt requirements-mutation.in
	$(LOCK) --output-file requirements-release.txt requirements-release.in
	$(LOCK) --output-file requirements-fuzz.txt requirements-fuzz.in
	$(LOCK) --output-file requirements-site.txt requirements-site.in
	$(LOCK) --output-file lab/bench/requirements.txt lab/bench/requirements.in
	$(LOCK) --output-file lab/servers/requirements.txt lab/servers/requirements.in
	$(LOCK) --output-file lab/spec/requirements.txt lab/spec/requirements.in
	$(LOCK) --output-file lab/e2e/requirements.txt lab/e2e/requirements.in
	$(LOCK) --output-file lab/fleet/requirements.txt lab/fleet/requirements.in
	$(LOCK) --output-file lab/page/requirements.txt lab/page/requirements.in

clean: ## remove the virtual environment and caches, never certificates
	rm -rf $(VENV) build dist *.egg-info .coverage .hypothesis .mypy_cache .ruff_cache .pytest_cache mutants
