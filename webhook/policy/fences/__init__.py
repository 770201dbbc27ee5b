"""The fences of a policy file: as written (`schema_types`), as compiled (`model`), and what they are made of."""
