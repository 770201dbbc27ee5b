"""What is tested, one module for each subject; each check yields rows."""
