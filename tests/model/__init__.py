"""A model of the world: API servers, electors and an attacker around one Lease, judged by the real webhook."""
