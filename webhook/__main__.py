"""`python -m webhook` is the console script `lease-webhook`."""

from webhook.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
