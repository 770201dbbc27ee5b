"""Bytes of any kind - reviews, manifests, dumps, watches, audit logs - become items, each with its place."""
