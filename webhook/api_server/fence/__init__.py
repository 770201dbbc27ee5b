"""A fence in CEL and YAML."""
