"""The commands as the page of `make web` calls them: the same functions, and plain data instead of printed lines.

A browser has no kubectl, no threads and little memory. `webhook/browser/budget.py` is where that shows: it opens what
is read, counts it, and ends the reading with a sentence. Everything else is the commands' own.
"""
