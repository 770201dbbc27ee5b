"""Several inputs, merged into one history: `merged` on top, and below it what brings one object into an order."""
