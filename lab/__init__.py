"""What measures, records and breaks: suites that `make test` does not run."""
