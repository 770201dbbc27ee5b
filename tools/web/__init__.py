"""The page that runs lease-webhook in a browser: `make web` puts together the files that a file server serves."""
