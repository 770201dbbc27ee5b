"""What is proven, one module for each subject; each check yields rows."""
