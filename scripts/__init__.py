"""Programs around the project: not part of the package."""
