"""The checks, one module for each subject; each check yields rows."""
