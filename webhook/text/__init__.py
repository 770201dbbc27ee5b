"""Texts as people, shells and kubectl read them: quoting, and YAML in both directions."""
