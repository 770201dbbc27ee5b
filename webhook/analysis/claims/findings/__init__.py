"""The claims about what happened and what is wrong, each made from the evidence that it needs."""
