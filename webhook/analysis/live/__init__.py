"""A timeline that grows: observations as they come, and the server of the page that shows them."""
