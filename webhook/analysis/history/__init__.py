"""What happened to a lease, from observations: who held it when, how it changed hands, what it can survive."""
