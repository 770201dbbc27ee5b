"""Who wrote a lease beside its holder, or something that it depends on."""
