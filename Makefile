PY = .venv/bin/python

.PHONY: setup test clean
setup: .venv/ready
.venv/ready:
	python3 -m venv .venv
	$(PY) -m pip install -q numpy pytest
	touch $@

test: setup
	$(PY) -m pytest -q

clean:
	rm -rf .venv
