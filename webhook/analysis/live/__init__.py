"""A timeline that goes on: observations as they come, and the server of the page that shows them."""
