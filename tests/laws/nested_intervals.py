"""What a prediction with an interval keeps: its loss in the band of the mean, the band in the interval."""


def nested(prediction):
    """Strictly, on both sides."""
    (low, high), (lowest, highest) = prediction.band, prediction.interval
    return lowest < low < prediction.loss < high < highest
