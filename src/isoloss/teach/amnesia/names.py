"""Names and looks of the contestants, the same in every table, sentence and figure. Needs no torch."""

from isoloss.figures.style import FAMILY_COLOURS, OTHER_COLOURS, shades

ATTENTION = "Transformer"
DEFAULT = "LSTM (torch default)"
BIAS_1 = "LSTM (forget bias 1)"
BIAS_3 = "LSTM (forget bias 3)"
CHRONO = "LSTM (chrono)"
TANH, BLOCK = "tanh RNN", "one causal block"

LSTMS = (DEFAULT, BIAS_1, BIAS_3, CHRONO)

_DARK = shades(FAMILY_COLOURS["lstm"], 4)
LOOKS = {
    ATTENTION: (FAMILY_COLOURS["transformer"], [1, 0], "circle"),
    BLOCK: (FAMILY_COLOURS["transformer"], [1, 0], "circle"),
    DEFAULT: (_DARK[3], [2, 2], "triangle-down"),
    BIAS_1: (_DARK[2], [6, 3], "square"),
    BIAS_3: (_DARK[0], [10, 3], "diamond"),
    CHRONO: (_DARK[1], [8, 3, 2, 3], "triangle-up"),
    TANH: (OTHER_COLOURS[2], [4, 4], "cross"),
}
"""Colour, dash and marker: a colour never tells alone."""
