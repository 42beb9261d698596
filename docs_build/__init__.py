"""What builds the documentation site: hooks of MkDocs, generated pages, notebooks, pictures, checks of the result."""
