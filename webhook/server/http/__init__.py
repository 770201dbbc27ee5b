"""HTTP/1.1 with clients that may be hostile, on asyncio and httptools. It knows nothing of reviews."""
