"""A model of the world: API servers, electors and an attacker around one Lease, evaluated by the real webhook."""
