"""Pictures of the recipes; matplotlib, since they are kept as PNG and SVG."""
