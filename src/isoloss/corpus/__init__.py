"""Corpora: text, split, tokenizer, token files, batches."""
