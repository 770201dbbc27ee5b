"""Runs in Pyodide, the CPython of browsers: the tests of the core, and every command whose output is stored."""
