"""One script per table on the pages: `table` returns its Markdown. `results.docs_tables` puts it on the page."""
