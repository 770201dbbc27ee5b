"""Programs that write pages and manifests, and make a release: `make docs`, `make derived`, `make dist` and others."""
