"""Suites that measure, record and break; `make test` runs none of them."""
