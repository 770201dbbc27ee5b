"""A timeline that goes on: observations as they come, and the page that shows them, as a Flask application."""
