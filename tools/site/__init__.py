"""The documentation as a site with a search, for any server of files: `make site` builds it by mkdocs-material."""
