"""How strict the rules are: modes, limits, exemptions, overrides and bindings, read from a policy file."""
