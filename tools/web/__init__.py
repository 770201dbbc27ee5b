"""The page that runs lease-webhook in a browser: `make web` puts together what a file server serves."""
