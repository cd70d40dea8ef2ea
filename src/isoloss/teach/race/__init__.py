"""The race: an LSTM layer and attention over the same tokens, refereed; and the bill for one more token."""
