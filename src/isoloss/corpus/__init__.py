"""Text by the document, its tokens, and batches that follow from a seed and a step."""
