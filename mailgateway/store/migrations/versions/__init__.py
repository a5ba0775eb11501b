"""One module for each revision, named by its number."""
