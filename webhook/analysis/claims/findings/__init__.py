"""The claims: what happened, and what is wrong, each from the evidence that it needs."""
