"""`python -m webhook` is the console script `lease-webhook`."""

from webhook.cli.main import script

if __name__ == "__main__":
    script()
